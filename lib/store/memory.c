/* SPDX-License-Identifier: MIT */
/*
 * One call does everything under the locks of the shards it touches, so that several charges are taken all or none and an
 * entry is never reused under a reader; compare-and-swap on entries would save at most 0.1 us and can do neither. A set of
 * shards is a bit mask and locked from its lowest bit up, the main table's before the overflow table's.
 * The tag is the whole 64-bit SipHash: two keys of one tag share a bucket, which with a million keys has odds of 1 in 37
 * million. A caller whose clock is behind its shard's is told waits from its own now, so that they come true for it.
 * A newcomer that was charged to the overflow table and later finds room of its own starts there with a full bucket: at
 * most one burst more for that key, and its network stays charged.
 * Ordinary pages: asking for huge ones made no measurable difference with a million keys.
 */
#include "store/store.h"

#include "base/digest.h"
#include "base/must.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <sys/mman.h>

#define CACHE_LINE_BYTES 64
#define LINE_ENTRIES 4
#define STORE_BYTES_MAX ((size_t)64 << 30)
#define OVERFLOW_SHARE 64
#define SHARDS_MAX 64
#define SHARD_BYTES_MIN ((size_t)64 * 1024)
#define OVERFLOW_SHARDS 16
#define USAGE_STRIDE_LINES 1024

/* Only in the overflow table: several keys owe here, so that none of them may cut the debt to its own limit. */
#define TAG_SHARED 0

/* Debts tried on top of each other stop here; with one more they still fit 64 bits. */
#define TIME_END ((ns)1 << 63)

/* All zero is a bucket that was never used. Free where paid_at has passed. */
struct entry {
	uint64_t tag;
	ns paid_at;
};

struct line {
	alignas(CACHE_LINE_BYTES) struct entry entries[LINE_ENTRIES];
};

struct shard {
	alignas(CACHE_LINE_BYTES) pthread_mutex_t lock;
	ns latest; /* time inside the shard */
	uint64_t overflow_total; /* the overflow table's shards only */
};

struct store {
	struct digest_key key;
	struct line *lines; /* shard by shard */
	struct entry *places; /* the overflow table, behind the lines */
	uint32_t n_shards; /* a power of two */
	uint32_t shard_lines;
	uint32_t n_places;
	size_t bytes;
	struct shard shards[SHARDS_MAX];
	struct shard overflow_shards[OVERFLOW_SHARDS];
};

_Static_assert(sizeof(struct line) == CACHE_LINE_BYTES, "four entries fill a cache line");
_Static_assert(sizeof(struct shard) == CACHE_LINE_BYTES,
	"a lock and its clock share one cache line with nothing else");
_Static_assert(SHARDS_MAX <= 64 && OVERFLOW_SHARDS <= 64, "sets of shards are 64-bit masks");

/* Where one charge of a call goes. */
struct spot {
	uint64_t tag;
	struct line *lines[2];
	struct entry *entry; /* its own, a free one, or a place of the overflow table */
	unsigned shard;
	bool overflow;
	ns now; /* the shard's */
	ns lag_ns; /* how far the caller's now is behind that */
	ns tried; /* paid_at if this charge and those before it were taken */
};

static void store_layout(struct store *s, size_t max_bytes)
{
	size_t overflow_bytes = max_bytes / OVERFLOW_SHARE / CACHE_LINE_BYTES * CACHE_LINE_BYTES;
	size_t n_lines = (max_bytes - overflow_bytes) / CACHE_LINE_BYTES;

	s->n_shards = SHARDS_MAX;
	while (s->n_shards > 1 && max_bytes / s->n_shards < SHARD_BYTES_MIN)
		s->n_shards /= 2;
	s->shard_lines = (uint32_t)(n_lines / s->n_shards);
	s->n_places = (uint32_t)(overflow_bytes / sizeof(struct entry));
	s->bytes = (size_t)s->n_shards * s->shard_lines * sizeof(struct line) + overflow_bytes;
}

static void shards_init(struct shard *shards, size_t n)
{
	pthread_mutexattr_t attr;

	/* Nobody holds a lock for longer than one decision: spin a little before sleeping. */
	must(pthread_mutexattr_init(&attr) == 0);
	must(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP) == 0);
	for (size_t i = 0; i < n; i++) {
		shards[i].latest = 0;
		shards[i].overflow_total = 0;
		must(pthread_mutex_init(&shards[i].lock, &attr) == 0);
	}
	pthread_mutexattr_destroy(&attr);
}

enum err store_open(struct store **ret, size_t max_bytes)
{
	struct store *s;
	void *table;

	if (max_bytes < STORE_BYTES_MIN || max_bytes > STORE_BYTES_MAX)
		return ERR_RANGE;
	s = aligned_alloc(alignof(struct store), sizeof *s);
	if (s == NULL)
		return ERR_MEMORY;
	store_layout(s, max_bytes);
	table = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (table == MAP_FAILED) {
		free(s);
		return ERR_MEMORY;
	}
	/* Every decision on a cold key misses the cache; with small pages it misses the page tables too (a seventh of the
	 * time with a million keys). Memory is still touched on use, in larger steps. Not having them is no fault. */
	(void)madvise(table, s->bytes, MADV_HUGEPAGE);
	s->lines = table;
	s->places = s->lines[(size_t)s->n_shards * s->shard_lines].entries;
	digest_random(s->key.bytes, sizeof s->key.bytes);
	shards_init(s->shards, SHARDS_MAX);
	shards_init(s->overflow_shards, OVERFLOW_SHARDS);
	*ret = s;
	return ERR_OK;
}

void store_close(struct store *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < SHARDS_MAX; i++)
		pthread_mutex_destroy(&s->shards[i].lock);
	for (size_t i = 0; i < OVERFLOW_SHARDS; i++)
		pthread_mutex_destroy(&s->overflow_shards[i].lock);
	munmap(s->lines, s->bytes);
	digest_wipe(&s->key, sizeof s->key);
	free(s);
}

static void shards_lock(struct shard *shards, uint64_t set, ns now)
{
	for (; set != 0; set &= set - 1) {
		struct shard *shard = &shards[__builtin_ctzll(set)];

		pthread_mutex_lock(&shard->lock);
		if (shard->latest < now)
			shard->latest = now;
	}
}

static void shards_unlock(struct shard *shards, uint64_t set)
{
	for (; set != 0; set &= set - 1)
		pthread_mutex_unlock(&shards[__builtin_ctzll(set)].lock);
}

static uint64_t store_tag(const struct store *s, struct str key)
{
	uint64_t tag = digest_short(&s->key, key.ptr, key.len);

	return tag != TAG_SHARED ? tag : 1;
}

/* 0 to n - 1, evenly, from 32 random bits, whatever n is. */
static uint32_t range_map(uint32_t bits, uint32_t n)
{
	return (uint32_t)(((uint64_t)bits * n) >> 32);
}

/* Works out tag, shard and both lines, and asks the memory for them before anybody waits for a lock. */
static void spot_aim(const struct store *s, const struct charge *c, struct spot *ret)
{
	uint64_t tag = store_tag(s, c->key);
	unsigned shard = (unsigned)tag & (s->n_shards - 1);
	struct line *lines = &s->lines[(size_t)shard * s->shard_lines];
	uint32_t first = range_map((uint32_t)(tag >> 8), s->shard_lines);
	uint32_t second = range_map((uint32_t)(tag >> 32), s->shard_lines - 1);

	second += second >= first; /* never the same line twice */
	ret->tag = tag;
	ret->shard = shard;
	ret->lines[0] = &lines[first];
	ret->lines[1] = &lines[second];
	__builtin_prefetch(ret->lines[0], 1);
	__builtin_prefetch(ret->lines[1], 1);
}

/* Only a live entry counts: an old one of the same tag may have been passed over when the key came back. */
static struct entry *line_find(struct line *line, uint64_t tag, ns now)
{
	for (size_t i = 0; i < LINE_ENTRIES; i++)
		if (line->entries[i].tag == tag && line->entries[i].paid_at > now)
			return &line->entries[i];
	return NULL;
}

/* How many entries are free, and one of them. An entry that an earlier charge of this call wants is not. */
static unsigned line_find_free(
	struct line *line, const struct spot *spots, size_t n, ns now, struct entry **ret)
{
	unsigned n_free = 0;

	for (size_t i = 0; i < LINE_ENTRIES; i++) {
		struct entry *e = &line->entries[i];
		bool wanted = false;

		for (size_t j = 0; j < n; j++)
			wanted = wanted || spots[j].entry == e;
		if (e->paid_at > now || wanted)
			continue;
		*ret = e;
		n_free++;
	}
	return n_free;
}

/* The emptier line takes the newcomer: that is what keeps two lines enough at 60 % load. */
static struct entry *spot_find_free(const struct spot *spots, size_t at)
{
	const struct spot *spot = &spots[at];
	struct entry *first = NULL;
	struct entry *second = NULL;
	unsigned n_first = line_find_free(spot->lines[0], spots, at, spot->now, &first);
	unsigned n_second = line_find_free(spot->lines[1], spots, at, spot->now, &second);

	return n_second > n_first ? second : first;
}

/* Cut and kept at once, whatever becomes of the charge, so that the wait it is told comes true. */
static void entry_cut(struct entry *e, const struct charge *c, ns now)
{
	ns cut = bucket_cut(&c->rule, e->paid_at, now);

	if (cut != e->paid_at)
		e->paid_at = cut;
}

/* The entry of charge number `at`, all before it having theirs; NULL if there is no room. */
static void spot_find(
	const struct store *s, const struct charge *charges, struct spot *spots, size_t at, ns now)
{
	struct spot *spot = &spots[at];

	spot->overflow = false;
	spot->now = s->shards[spot->shard].latest;
	spot->lag_ns = spot->now - now;
	spot->entry = line_find(spot->lines[0], spot->tag, spot->now);
	if (spot->entry == NULL)
		spot->entry = line_find(spot->lines[1], spot->tag, spot->now);
	if (spot->entry != NULL) {
		entry_cut(spot->entry, &charges[at], spot->now);
		return;
	}
	for (size_t i = 0; i < at; i++)
		if (spots[i].tag == spot->tag) {
			spot->entry = spots[i].entry; /* one key twice; NULL if the first found no room */
			return;
		}
	spot->entry = spot_find_free(spots, at);
}

/* Gives those that found no room their places, and locks these. Returns the set of locked shards. */
static uint64_t overflow_find(
	struct store *s, const struct charge *charges, struct spot *spots, size_t n, ns now)
{
	uint64_t set = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t place;

		if (spots[i].entry != NULL)
			continue;
		spots[i].tag = store_tag(s, charges[i].wide);
		place = range_map((uint32_t)(spots[i].tag >> 32), s->n_places);
		spots[i].shard = place % OVERFLOW_SHARDS;
		spots[i].entry = &s->places[place];
		spots[i].overflow = true;
		set |= (uint64_t)1 << spots[i].shard;
	}
	shards_lock(s->overflow_shards, set, now);
	for (size_t i = 0; i < n; i++) {
		struct shard *shard = &s->overflow_shards[spots[i].shard];

		if (!spots[i].overflow)
			continue;
		shard->overflow_total++;
		spots[i].now = shard->latest;
		spots[i].lag_ns = shard->latest - now;
		if (spots[i].entry->tag == spots[i].tag)
			entry_cut(spots[i].entry, &charges[i], spots[i].now);
	}
	return set;
}

/* What charge number `at` finds in its entry once those before it in its group were taken. */
static ns spot_paid_at(const struct charge *charges, const struct spot *spots, size_t at)
{
	for (size_t i = at; i-- > 0;)
		if (spots[i].entry == spots[at].entry && charges[i].shadow == charges[at].shadow)
			return spots[i].tried;
	return spots[at].entry->paid_at;
}

static void spot_charge(const struct spot *spot, const struct charge *c)
{
	struct entry *e = spot->entry;

	if (e->paid_at <= spot->now)
		e->tag = spot->tag;
	else if (e->tag != spot->tag)
		e->tag = TAG_SHARED;
	e->paid_at = bucket_charge(&c->rule, e->paid_at, c->cost, spot->now);
}

/* Judges one group, the enforced charges or the shadow ones, and takes it if may_take and all of it fits. Returns whether
 * it fits. A peek is judged like the others and only not taken. */
static bool group_take(const struct charge *charges, struct spot *spots, size_t n, bool shadow, bool may_take,
	struct taking *takings)
{
	bool fits = true;

	for (size_t i = 0; i < n; i++) {
		const struct charge *c = &charges[i];
		ns paid_at;
		ns wait_ns;

		if (c->shadow != shadow)
			continue;
		paid_at = spot_paid_at(charges, spots, i);
		wait_ns = bucket_wait_ns(&c->rule, paid_at, c->cost, spots[i].now);
		takings[i].refused = wait_ns > 0;
		takings[i].wait_ns = wait_ns > 0 ? wait_ns + spots[i].lag_ns : 0;
		fits = fits && wait_ns == 0;
		spots[i].tried = bucket_charge(&c->rule, paid_at, c->cost, spots[i].now);
		if (spots[i].tried > TIME_END)
			spots[i].tried = TIME_END;
	}
	if (!fits || !may_take)
		return fits;
	for (size_t i = 0; i < n; i++)
		if (charges[i].shadow == shadow && !charges[i].peek)
			spot_charge(&spots[i], &charges[i]);
	return true;
}

static void taking_fill(const struct charge *c, const struct spot *spot, struct taking *taking)
{
	ns paid_at = spot->entry->paid_at;
	ns most = bucket_cut(
		&c->rule, paid_at, spot->now); /* a shared place may hold more than this limit's room */
	ns next_ns = bucket_next_ns(&c->rule, most, spot->now);

	taking->overflow = spot->overflow;
	taking->remaining = bucket_remaining(&c->rule, most, spot->now);
	taking->next_ns = next_ns > 0 ? next_ns + (paid_at - most) + spot->lag_ns : 0;
}

void store_take(struct store *s, const struct charge *charges, size_t n, ns now, struct taking *ret_takings)
{
	struct spot spots[CHARGES_MAX];
	uint64_t set = 0;
	uint64_t overflow_set = 0;
	bool no_room = false;
	bool taken;

	must(n >= 1 && n <= CHARGES_MAX);
	for (size_t i = 0; i < n; i++) {
		spot_aim(s, &charges[i], &spots[i]);
		set |= (uint64_t)1 << spots[i].shard;
	}
	shards_lock(s->shards, set, now);
	for (size_t i = 0; i < n; i++) {
		spot_find(s, charges, spots, i, now);
		no_room = no_room || spots[i].entry == NULL;
	}
	if (no_room)
		overflow_set = overflow_find(s, charges, spots, n, now);
	taken = group_take(charges, spots, n, false, true, ret_takings);
	group_take(charges, spots, n, true, taken, ret_takings);
	for (size_t i = 0; i < n; i++)
		taking_fill(&charges[i], &spots[i], &ret_takings[i]);
	shards_unlock(s->overflow_shards, overflow_set);
	shards_unlock(s->shards, set);
}

bool store_forgive(struct store *s, struct str key, ns now)
{
	const struct charge c = {.key = key};
	struct spot spot;
	struct entry *e;

	spot_aim(s, &c, &spot);
	shards_lock(s->shards, (uint64_t)1 << spot.shard, now);
	now = s->shards[spot.shard].latest;
	e = line_find(spot.lines[0], spot.tag, now);
	if (e == NULL)
		e = line_find(spot.lines[1], spot.tag, now);
	if (e != NULL)
		e->paid_at = 0;
	shards_unlock(s->shards, (uint64_t)1 << spot.shard);
	return e != NULL;
}

/* The lock is given back every 64 KiB, so that a scrape of a large table never holds up a decision for long. */
static uint64_t shard_count(struct shard *shard, const struct line *lines, size_t n, ns now)
{
	uint64_t in_debt = 0;

	for (size_t at = 0; at < n; at += USAGE_STRIDE_LINES) {
		size_t end = n - at > USAGE_STRIDE_LINES ? at + USAGE_STRIDE_LINES : n;

		pthread_mutex_lock(&shard->lock);
		if (now < shard->latest)
			now = shard->latest;
		for (size_t i = at * LINE_ENTRIES; i < end * LINE_ENTRIES; i++)
			in_debt += lines[i / LINE_ENTRIES].entries[i % LINE_ENTRIES].paid_at > now;
		pthread_mutex_unlock(&shard->lock);
	}
	return in_debt;
}

void store_usage_read(struct store *s, ns now, struct store_usage *ret)
{
	uint64_t overflow_total = 0;
	uint64_t entries = 0;

	for (size_t i = 0; i < s->n_shards; i++)
		entries += shard_count(&s->shards[i], &s->lines[i * s->shard_lines], s->shard_lines, now);
	for (size_t i = 0; i < OVERFLOW_SHARDS; i++) {
		pthread_mutex_lock(&s->overflow_shards[i].lock);
		overflow_total += s->overflow_shards[i].overflow_total;
		pthread_mutex_unlock(&s->overflow_shards[i].lock);
	}
	*ret = (struct store_usage){
		.entries = entries,
		.capacity = (uint64_t)s->n_shards * s->shard_lines * LINE_ENTRIES,
		.overflow_total = overflow_total,
		.bytes = s->bytes,
	};
}

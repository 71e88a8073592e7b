/* SPDX-License-Identifier: MIT */
/*
 * When traffic is called misread. Many people behind one key are no fault: offices, schools and carriers look like that. So
 * an accusation takes a second, independent thing that an honest shared address does not do: a proxy that names its
 * clients and is not heard, a hop that fails to name them, a list whose chosen place holds few addresses while the
 * place beside it holds ten times as many, or private addresses that few keys share although browsers of many kinds
 * are behind them (a farm of terminal servers has one kind, a public site many).
 * A stranger's header proves little, for anybody can send one: outside own_networks nearly all of the key's requests must
 * carry it, and hardly anybody may come without, straight or through our own proxy; where visitors do, the address is one
 * more visitor. Somebody who is nearly all of the traffic and makes up addresses and cookies looks like a proxy of ours to
 * the last bit: so what is said of a stranger always stands under "if it is a proxy of yours".
 */
#include "watch/finding.h"

#include "watch/part.h"

#include "base/log.h"

#define FLOOR_REQUESTS 150u
#define FLOOR_STRANGER_REQUESTS                                                                              \
	WINDOW_REQUESTS_MIN /* for a key outside own_networks: with less, the few who come without may not have come yet */
#define PEOPLE_MIN 12u
#define VALUES_MIN 21u /* different addresses in a header that is not read */
#define AGENTS_MIN 6u /* kinds of browser that tell a public from a managed place */
#define FEW_KEYS 8u /* fewer than that hold nearly everything */
#define STRANGERS_MIN                                                                                        \
	4u /* different public addresses that come straight: this door is open to the Internet */
#define KEY_REQUESTS_MIN 30u /* a key is not judged on less */
#define ALIKE_REQUESTS_MIN 4u /* nor even held for one that may be like another */
#define RULE_WARNINGS_MAX 8u /* keys named one by one; those that were named before come first */
#define CALLS_REFUSED_MIN 10u

static const struct {
	struct str word, text;
	enum finding_level level;
} findings[FINDING_CODE_COUNT] = {
#define FINDING(id, word, level, text)                                                                       \
	[FINDING_CODE_##id] = {{word, sizeof(word) - 1}, {text, sizeof(text) - 1}, FINDING_##level},
#include "signals.def"
#undef FINDING
};

static const struct {
	struct str word, text;
} signals[SIGNAL_COUNT] = {
#define SIGNAL(id, word, text) [SIGNAL_##id] = {{word, sizeof(word) - 1}, {text, sizeof(text) - 1}},
#include "signals.def"
#undef SIGNAL
};

struct str finding_word(enum finding_code c)
{
	return findings[c].word;
}

struct str finding_text(enum finding_code c)
{
	return findings[c].text;
}

enum finding_level finding_level_of(enum finding_code c)
{
	return findings[c].level;
}

struct str signal_word(enum signal s)
{
	return signals[s].word;
}

struct str signal_text(enum signal s)
{
	return signals[s].text;
}

/* ---- judging */

static unsigned bit(enum signal s)
{
	return 1u << s;
}

/* What holds for all keys of a rule. */
struct rule_view {
	struct watch *w;
	const struct window *win;
	const struct rule *rule;
	ns now, wall_now;
	bool few_private; /* fewer than FEW_KEYS addresses that can be no visitor's hold over 90 % */
	bool left_varies; /* in over 80 %, with ten times as many public values as there are keys */
	bool many_undecided; /* over 5 % */
	bool open_door; /* strangers come straight */
	bool open_list; /* strangers come through our own proxy, and nothing public stands left of them */
};

static uint64_t surely(const struct slot *s)
{
	return s->count - s->error;
}

static bool is_own_proxy(const struct watch *w, const struct behind *b)
{
	return b->decided && !b->chosen_is_peer &&
	       range_set_find(&w->rules->client.trusted, &b->address) != NULL;
}

static bool is_private(const struct watch *w, const struct behind *b)
{
	return b->has_address && (ip_is_local(&b->address) || is_own_proxy(w, b));
}

static bool is_own(const struct watch *w, const struct ip *ip)
{
	return range_set_find(&w->rules->own_networks, ip) != NULL;
}

static bool peer_is_own(const struct watch *w, const struct behind *b)
{
	return b->peer_is_unix || (b->has_peer && is_own(w, &b->peer));
}

/* The requests of the FEW_KEYS - 1 busiest of the private keys. */
static uint64_t private_sum(const struct watch *w, const struct window *win)
{
	uint64_t top[FEW_KEYS - 1] = {0}, sum = 0;

	for (size_t i = 0; i < win->busiest_slots.n; i++) {
		uint64_t n = surely(&win->busiest[i].slot);

		if (!is_private(w, &win->busiest[i]))
			continue;
		for (size_t k = 0; k < FEW_KEYS - 1; k++) {
			if (n > top[k]) {
				uint64_t other = top[k];

				top[k] = n;
				n = other;
			}
		}
	}
	for (size_t k = 0; k < FEW_KEYS - 1; k++)
		sum += top[k];
	return sum;
}

static void view_make(struct watch *w, size_t rule, ns now, ns wall_now, struct rule_view *ret)
{
	const struct window *win = w->merged;

	*ret = (struct rule_view){
		.w = w, .win = win, .rule = &w->rules->rules[rule], .now = now, .wall_now = wall_now};
	ret->few_private = private_sum(w, win) * 10 > win->requests * 9;
	ret->left_varies = win->left * 10 > win->requests * 8 &&
			   sketch_count(&win->left_values) >= 10 * sketch_count(&win->keys);
	ret->many_undecided = win->undecided * 20 > win->requests;
	ret->open_door =
		win->strangers * 50 > win->requests && sketch_count(&win->stranger_keys) >= STRANGERS_MIN;
	ret->open_list = win->ends * 100 > win->requests && sketch_count(&win->end_keys) >= STRANGERS_MIN;
}

/* The signals of a key that is a proxy's, and whether they are proof. */
static bool judge_unread(const struct rule_view *view, const struct behind *b)
{
	if (sketch_count(&b->unread_values) < VALUES_MIN)
		return false;
	if (peer_is_own(view->w, b))
		return b->unread * 2 > surely(&b->slot);
	return b->unread * 10 > surely(&b->slot) * 9 && !view->open_door &&
	       view->win->requests >= FLOOR_STRANGER_REQUESTS;
}

static bool judge_private(const struct rule_view *view, const struct behind *b)
{
	uint64_t agents = sketch_count(&b->agents);

	return view->few_private && is_private(view->w, b) && (agents == 0 || agents >= AGENTS_MIN) &&
	       (is_own(view->w, &b->address) || is_own_proxy(view->w, b));
}

static bool judge_left(const struct rule_view *view, const struct behind *b)
{
	if (!view->left_varies || b->left * 10 <= surely(&b->slot) * 8 || sketch_count(&b->left_values) < 10)
		return false;
	return !is_stranger(view->w, b) ||
	       (!view->open_list && view->win->requests >= FLOOR_STRANGER_REQUESTS);
}

static unsigned judge(const struct rule_view *view, const struct behind *b, bool *ret_proof)
{
	uint64_t seen = surely(&b->slot);
	bool unread = judge_unread(view, b), is_misplaced = judge_private(view, b);
	bool left = judge_left(view, b);
	bool undecided = !b->decided && view->many_undecided;
	unsigned bits = 0;

	*ret_proof = unread || is_misplaced || left || undecided;
	if (b->has_address && ip_is_local(&b->address))
		bits |= bit(SIGNAL_KEY_PRIVATE);
	if (is_own_proxy(view->w, b))
		bits |= bit(SIGNAL_KEY_IS_OWN_PROXY);
	if (unread)
		bits |= bit(SIGNAL_FORWARDED_HEADER_IGNORED);
	if (undecided)
		bits |= bit(SIGNAL_UNDECIDED_SHARE);
	if (sketch_count(&b->people) >= PEOPLE_MIN)
		bits |= bit(SIGNAL_MANY_BEHIND_ONE_KEY);
	if (seen * 2 > view->win->requests)
		bits |= bit(SIGNAL_KEY_DOMINATES);
	if (view->few_private && is_private(view->w, b))
		bits |= bit(SIGNAL_FEW_KEYS);
	if (left)
		bits |= bit(SIGNAL_LEFT_NEIGHBOUR_VARIES);
	return bits;
}

/* ---- findings */

struct found {
	struct finding *items;
	size_t n, max;
};

static bool comes_before(const struct finding *a, const struct finding *b)
{
	if (finding_level_of(a->code) != finding_level_of(b->code))
		return finding_level_of(a->code) == FINDING_WARNING;
	return a->requests > b->requests;
}

/* Keeps the list in order; a full list loses its last. */
static void found_add(struct found *found, const struct finding *f)
{
	size_t at = found->n;

	while (at > 0 && comes_before(f, &found->items[at - 1]))
		at--;
	if (at == found->max)
		return;
	if (found->n < found->max)
		found->n++;
	memmove(&found->items[at + 1], &found->items[at], (found->n - 1 - at) * sizeof(*f));
	found->items[at] = *f;
}

/* A finding that was there before keeps the time it began. */
static ns since(const struct rule_view *view, const struct finding *f, ns first_ns)
{
	const struct active *a = active_find(view->w, f);
	ns first = to_wall(first_ns, view->now, view->wall_now);

	return a != NULL && a->since < first ? a->since : first;
}

static void finding_start(
	const struct rule_view *view, enum finding_code code, const struct ip *key, struct finding *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->code = code;
	ret->rule = view->rule;
	if (key != NULL)
		(void)ip_print(key, ret->key_z);
	else
		memcpy(ret->key_z, "none", sizeof("none"));
}

/* Another key of the same rule that has the same fault: trusted together, one cure cures all. */
static bool is_alike(
	const struct rule_view *view, const struct behind *a, unsigned bits, const struct behind *b)
{
	bool proof;
	unsigned other = judge(view, b, &proof);

	if (!proof || !(other & bit(SIGNAL_MANY_BEHIND_ONE_KEY)) || surely(&b->slot) < KEY_REQUESTS_MIN)
		return false;
	return a->chosen_is_peer == b->chosen_is_peer && a->decided == b->decided &&
	       (bits & bit(SIGNAL_LEFT_NEIGHBOUR_VARIES)) == (other & bit(SIGNAL_LEFT_NEIGHBOUR_VARIES)) &&
	       is_own(view->w, &a->address) == is_own(view->w, &b->address);
}

/* It may have the same fault, though it has not been seen enough to be told of. */
static bool may_be_alike(const struct rule_view *view, const struct behind *a, const struct behind *b)
{
	uint64_t n = a->chosen_is_peer ? b->unread : b->left;

	return a->chosen_is_peer == b->chosen_is_peer && b->decided &&
	       is_own(view->w, &a->address) == is_own(view->w, &b->address) &&
	       surely(&b->slot) >= ALIKE_REQUESTS_MIN && n * 10 > surely(&b->slot) * 9;
}

static void add_cure(const struct rule_view *view, const struct behind *b, struct finding *f)
{
	struct cure_case c = {.behind = b,
		.kind = !b->decided         ? EXAMPLE_UNDECIDED
			: b->chosen_is_peer ? EXAMPLE_PEER
					    : EXAMPLE_DECIDED};
	struct ip chosen[FEW_KEYS];

	if (b->decided)
		chosen[c.n_chosen++] = b->address;
	for (size_t i = 0; b->decided && i < view->win->busiest_slots.n; i++) {
		const struct behind *other = &view->win->busiest[i];

		if (other == b)
			continue;
		if (is_alike(view, b, f->signals, other) && c.n_chosen < FEW_KEYS)
			chosen[c.n_chosen++] = other->address;
		else
			c.n_more += may_be_alike(view, b, other);
	}
	c.more_unseen = c.n_more > 0 && view->win->busiest_slots.n == TOP_KEYS_MAX;
	c.chosen = chosen;
	cure_find(view->w, &c, f);
}

/* A key is a warning, or a note, or nothing. */
static bool key_is_found(const struct rule_view *view, const struct behind *b, struct finding *f)
{
	uint64_t seen = surely(&b->slot);
	bool proof, many, heavy, unheard;
	unsigned bits = judge(view, b, &proof);

	many = bits & bit(SIGNAL_MANY_BEHIND_ONE_KEY);
	heavy = bits & bit(SIGNAL_KEY_DOMINATES) ||
		(bits & bit(SIGNAL_KEY_PRIVATE) && seen * 10 > view->win->requests);
	unheard = bits & bit(SIGNAL_FORWARDED_HEADER_IGNORED) && peer_is_own(view->w, b);
	if (seen < KEY_REQUESTS_MIN || !(unheard || (many && (proof || heavy))))
		return false;
	finding_start(view, proof && many ? FINDING_CODE_SHARED_BUCKET : FINDING_CODE_MANY_BEHIND_ONE_KEY,
		b->has_address ? &b->address : NULL, f);
	f->signals = bits;
	f->requests = seen;
	f->since = since(view, f, b->first_ns);
	return true;
}

static void add_keys(const struct rule_view *view, bool known, unsigned *warnings, struct found *found)
{
	const struct window *win = view->win;
	struct finding f;

	for (size_t i = 0; i < win->busiest_slots.n; i++) {
		const struct behind *b = &win->busiest[i];

		if (!key_is_found(view, b, &f) || (active_find(view->w, &f) != NULL) != known)
			continue;
		if (f.code == FINDING_CODE_SHARED_BUCKET && (*warnings)++ >= RULE_WARNINGS_MAX)
			continue;
		words_key(view->w, win, b, &f);
		if (f.code == FINDING_CODE_SHARED_BUCKET || f.signals & bit(SIGNAL_FORWARDED_HEADER_IGNORED))
			add_cure(view, b, &f);
		else
			words_no_cure(&f);
		found_add(found, &f);
	}
}

/* Nobody can be told apart behind them, and yet most of the rule cannot be decided. */
static void add_undecided(const struct rule_view *view, struct found *found)
{
	const struct window *win = view->win;
	const struct behind *most = NULL;
	struct finding f;

	for (size_t i = 0; i < found->n; i++) {
		if (found->items[i].rule == view->rule &&
			found->items[i].signals & bit(SIGNAL_UNDECIDED_SHARE))
			return;
	}
	for (size_t i = 0; i < win->busiest_slots.n; i++) {
		const struct behind *b = &win->busiest[i];

		if (!b->decided && (most == NULL || surely(&b->slot) > surely(&most->slot)))
			most = b;
	}
	if (most == NULL || win->undecided * 5 <= win->requests)
		return;
	finding_start(view, FINDING_CODE_UNDECIDED_SHARE, most->has_address ? &most->address : NULL, &f);
	f.signals = bit(SIGNAL_UNDECIDED_SHARE);
	f.requests = win->undecided;
	f.since = since(view, &f, most->first_ns);
	words_undecided(win, most, &f);
	add_cure(view, most, &f);
	found_add(found, &f);
}

/* One of our own programs, refused on behalf of many. */
static void add_callers(const struct rule_view *view, struct found *found)
{
	for (size_t i = 0; i < view->win->caller_slots.n; i++) {
		const struct caller *c = &view->win->callers[i];
		struct finding f;

		if (c->refused < CALLS_REFUSED_MIN || c->browser || sketch_count(&c->agents) > 1 ||
			sketch_count(&c->clients) < PEOPLE_MIN ||
			!(c->is_unix || (c->has_ip && is_own(view->w, &c->ip))))
			continue;
		finding_start(view, FINDING_CODE_OWN_CALLS_WITHOUT_TOKEN, c->has_ip ? &c->ip : NULL, &f);
		f.requests = c->refused;
		f.since = since(view, &f, c->first_ns);
		words_caller(view->w, c, &f);
		found_add(found, &f);
	}
}

/* A limit that no address names cannot be shared by misreading one. */
static bool is_keyed_by_client(const struct ruleset *rules, const struct rule *rule)
{
	for (size_t i = 0; i < rule->n_limits; i++) {
		const struct limit *limit = &rules->limits[rule->limits[i]];

		for (size_t k = 0; k < limit->n_key; k++) {
			if (limit->key[k].part == KEY_CLIENT || limit->key[k].part == KEY_NETWORK)
				return true;
		}
	}
	return false;
}

size_t findings_compute(struct watch *w, ns now, ns wall_now, struct finding *ret, size_t max)
{
	struct found found = {ret, 0, max};

	for (size_t i = 0; i < w->n_rules; i++) {
		struct rule_view view;
		unsigned warnings = 0;

		if (!is_keyed_by_client(w->rules, &w->rules->rules[i]))
			continue;
		watch_merge(w, i, now, false, true);
		if (w->merged->requests < FLOOR_REQUESTS)
			continue;
		view_make(w, i, now, wall_now, &view);
		add_keys(&view, true, &warnings, &found);
		add_keys(&view, false, &warnings, &found);
		add_undecided(&view, &found);
		add_callers(&view, &found);
	}
	return found.n;
}

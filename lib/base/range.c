/* SPDX-License-Identifier: MIT */
/*
 * Ranges in sorted arrays. Ranges either nest or are disjoint, which is what makes the search short: the
 * last range whose base is not above the address either holds it, and is then the narrowest that does, or
 * shares only so many leading bits with it, and then whatever holds the address holds that range too and is
 * no longer than those bits. So each miss shortens the prefix to look for, and a lookup is a few binary
 * searches, usually one. Sorting is a heap sort of our own: the libc's qsort allocates for large arrays and
 * this file may not.
 */
#include "base/range.h"

#include <endian.h>

#define BITS_MAX 128
#define V4_OFFSET 96
#define LEN_BITS_MAX 999 /* larger prefix lengths are all the same mistake */

struct wide {
	uint64_t high, low;
};

static struct wide wide_from_ip(const struct ip *ip)
{
	struct wide w;

	memcpy(&w, ip->bytes, sizeof(w));
	return (struct wide){be64toh(w.high), be64toh(w.low)};
}

static struct wide wide_mask(struct wide w, unsigned bits)
{
	if (bits >= 64)
		return (struct wide){w.high, bits > 64 ? w.low & UINT64_MAX << (BITS_MAX - bits) : 0};
	return (struct wide){bits > 0 ? w.high & UINT64_MAX << (64 - bits) : 0, 0};
}

/* How many leading bits are the same. */
static unsigned wide_common(struct wide a, struct wide b)
{
	if (a.high != b.high)
		return (unsigned)__builtin_clzll(a.high ^ b.high);
	return a.low != b.low ? 64 + (unsigned)__builtin_clzll(a.low ^ b.low) : BITS_MAX;
}

/* True if the range stands behind {base, bits} in the order of a set. */
static bool is_behind(const struct range *r, struct wide base, unsigned bits)
{
	struct wide own = wide_from_ip(&r->base);

	if (own.high != base.high)
		return own.high > base.high;
	return own.low != base.low ? own.low > base.low : r->bits > bits;
}

bool range_contains(const struct range *r, const struct ip *ip)
{
	return ip_is_v4(&r->base) == ip_is_v4(ip) &&
	       wide_common(wide_from_ip(&r->base), wide_from_ip(ip)) >= r->bits;
}

const struct range *range_set_find(const struct range_set *set, const struct ip *ip)
{
	bool is_v4 = ip_is_v4(ip);
	size_t first = is_v4 ? 0 : set->n_v4, end = is_v4 ? set->n_v4 : set->n;
	struct wide address = wide_from_ip(ip);
	unsigned bits = BITS_MAX;

	while (first < end) {
		struct wide base = wide_mask(address, bits);
		size_t low = first;

		while (low < end) {
			size_t middle = low + (end - low) / 2;

			if (is_behind(&set->items[middle], base, bits))
				end = middle;
			else
				low = middle + 1;
		}
		if (end == first)
			return NULL;
		end--;
		bits = wide_common(wide_from_ip(&set->items[end].base), address);
		if (bits >= set->items[end].bits)
			return &set->items[end];
	}
	return NULL;
}

static bool any_base_within(const struct range_set *a, const struct range_set *b)
{
	for (size_t i = 0; i < a->n; i++)
		if (range_set_find(b, &a->items[i].base) != NULL)
			return true;
	return false;
}

bool range_set_overlaps(const struct range_set *a, const struct range_set *b)
{
	/* Of two ranges that meet, one holds the other's base. */
	return any_base_within(a, b) || any_base_within(b, a);
}

static bool is_before(const struct range *a, const struct range *b)
{
	bool a_v4 = ip_is_v4(&a->base), b_v4 = ip_is_v4(&b->base);

	return a_v4 != b_v4 ? a_v4 : is_behind(b, wide_from_ip(&a->base), a->bits);
}

static void sift_down(struct range *items, size_t root, size_t n)
{
	struct range moving = items[root];

	for (;;) {
		size_t child = 2 * root + 1;

		if (child >= n)
			break;
		if (child + 1 < n && is_before(&items[child], &items[child + 1]))
			child++;
		if (!is_before(&moving, &items[child]))
			break;
		items[root] = items[child];
		root = child;
	}
	items[root] = moving;
}

static void sort(struct range *items, size_t n)
{
	for (size_t i = n / 2; i-- > 0;)
		sift_down(items, i, n);
	for (size_t end = n; end > 1; end--) {
		struct range top = items[0];

		items[0] = items[end - 1];
		items[end - 1] = top;
		sift_down(items, 0, end - 1);
	}
}

bool range_set_build(struct range_set *ret_set, struct arena *a, const struct range *items, size_t n)
{
	struct range *copy = arena_array(a, n, sizeof(*copy));
	size_t n_v4 = 0;

	if (copy == NULL)
		return false;
	if (n != 0)
		memcpy(copy, items, n * sizeof(*copy));
	sort(copy, n);
	while (n_v4 < n && ip_is_v4(&copy[n_v4].base))
		n_v4++;
	*ret_set = (struct range_set){.items = copy, .n = n, .n_v4 = n_v4};
	return true;
}

/* What range_parse says about a text, and the form that was probably meant. */
struct judgement {
	const char *why;
	struct range better;
	bool has_better;
};

static void suggest(struct judgement *j, const struct ip *ip, unsigned bits)
{
	if (bits <= (ip_is_v4(ip) ? V4_OFFSET : 0))
		return;
	j->better = (struct range){.base = *ip, .bits = (uint8_t)bits};
	ip_mask(&j->better.base, bits);
	j->has_better = true;
}

/* The prefix length that a netmask for ip stands for; false if ones and zeros are mixed. */
static bool netmask_bits(struct str s, const struct ip *ip, unsigned *ret_bits)
{
	struct ip mask, all = ip_from_v4(UINT32_MAX);
	unsigned ones;

	if (!ip_parse(&mask, s) || ip_is_v4(&mask) != ip_is_v4(ip))
		return false;
	if (!ip_is_v4(&mask))
		memset(all.bytes, 0xff, sizeof(all.bytes));
	ones = wide_common(wide_from_ip(&mask), wide_from_ip(&all));
	ip_mask(&all, ones);
	*ret_bits = ones;
	return ip_equal(&mask, &all);
}

/* The base was not an address: says what it looks like instead. */
static void judge_base(struct judgement *j, struct str s, struct str base)
{
	struct ip ip;
	struct str port;

	if (base.len == 0) {
		j->why = s.len == 0 ? "it is empty" : "the address is missing";
	} else if (str_find(base, '%') != base.len) {
		j->why = "a zone has no meaning in a range";
	} else if (ip_parse_with_port(&ip, base, &port)) {
		j->why = port.len != 0 ? "a port has no meaning in a range"
				       : "brackets have no meaning in a range";
		if (base.len == s.len)
			suggest(j, &ip, BITS_MAX);
	} else {
		j->why = "it does not start with an IPv4 address (four numbers without leading zeros) or an "
			 "IPv6 address, and names are not resolved";
	}
}

/* The text behind the slash, for an address of max bits. */
static bool judge_length(
	struct judgement *j, struct str text, const struct ip *ip, unsigned max, unsigned *ret_bits)
{
	struct str digits = text;
	unsigned offset = BITS_MAX - max, mask_bits;
	uint64_t n;

	while (digits.len > 1 && digits.ptr[0] == '0')
		digits = str_from(digits, 1);
	if (text.len == 0) {
		j->why = "the prefix length behind the slash is missing";
	} else if (netmask_bits(text, ip, &mask_bits)) {
		j->why = "a netmask is not accepted, only a prefix length";
		suggest(j, ip, mask_bits);
	} else if (!str_to_u64(digits, LEN_BITS_MAX, &n)) {
		j->why = "what stands behind the slash is not a prefix length";
	} else if (n > max) {
		j->why = max == BITS_MAX ? "the prefix length is over 128" : "the prefix length is over 32";
	} else if (n == 0) {
		j->why = "a prefix length of 0 would hold every address";
	} else if (digits.len != text.len) {
		j->why = "the prefix length has leading zeros";
		suggest(j, ip, offset + (unsigned)n);
	} else {
		*ret_bits = offset + (unsigned)n;
		return true;
	}
	return false;
}

static bool judge(struct judgement *j, struct str s, struct range *ret_range)
{
	size_t slash = str_find(s, '/');
	struct str base = str_head(s, slash);
	bool is_v6_text = str_find(base, ':') != base.len;
	unsigned bits = BITS_MAX;
	struct ip ip, masked;

	if (str_find(base, '%') != base.len || !ip_parse(&ip, base)) {
		judge_base(j, s, base);
		return false;
	}
	if (slash != s.len &&
		!judge_length(j, str_from(s, slash + 1), &ip, is_v6_text ? BITS_MAX : 32, &bits))
		return false;
	if (ip_is_v4(&ip) && bits < V4_OFFSET) {
		j->why = "an IPv4-mapped base needs a prefix length over 96";
		return false;
	}
	if (ip_is_v4(&ip) && bits == V4_OFFSET) {
		j->why = "a prefix length of 0 (96 for a mapped base) would hold every IPv4 address";
		return false;
	}
	masked = ip;
	ip_mask(&masked, bits);
	if (!ip_equal(&masked, &ip)) {
		j->why = "host bits are set";
		suggest(j, &ip, bits);
		return false;
	}
	*ret_range = (struct range){.base = ip, .bits = (uint8_t)bits};
	return true;
}

bool range_parse(struct range *ret_range, struct str s, const char **ret_why, struct range *ret_better,
	bool *ret_has_better)
{
	struct judgement j = {0};
	struct str trimmed = str_trim(s);
	struct range range;
	bool is_good = judge(&j, trimmed, &range);

	if (trimmed.len != s.len) {
		j.why = "there is white space around it";
		if (is_good)
			suggest(&j, &range.base, range.bits);
		is_good = false;
	}
	if (is_good) {
		*ret_range = range;
		return true;
	}
	*ret_why = j.why;
	if (ret_better != NULL && j.has_better)
		*ret_better = j.better;
	if (ret_has_better != NULL)
		*ret_has_better = j.has_better;
	return false;
}

size_t range_print(const struct range *r, char out[RANGE_TEXT_BYTES])
{
	size_t len = ip_print(&r->base, out);
	unsigned n = ip_is_v4(&r->base) ? r->bits - V4_OFFSET : r->bits;

	if (r->bits == BITS_MAX)
		return len;
	out[len++] = '/';
	if (n >= 100)
		out[len++] = '1';
	if (n >= 10)
		out[len++] = (char)('0' + n / 10 % 10);
	out[len++] = (char)('0' + n % 10);
	out[len] = '\0';
	return len;
}

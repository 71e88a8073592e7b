/* SPDX-License-Identifier: MIT */
/*
 * What the memory store needs: bytes a key with 600,000 keys in debt in a table of 16 MiB, how many of them had to share an
 * overflow bucket, and the resident set after one and after twenty million random keys, which must be the same.
 * Prints "name value" lines.
 */
#include "base/digest.h"
#include "store/store.h"

#include "../support/random.h"

#include <stdio.h>
#include <unistd.h>

#define STORE_BYTES ((size_t)16 * 1024 * 1024)
#define LIVE_KEYS 600000u
#define FLOOD_SOME 1000000u
#define FLOOD_ALL 20000000u
#define NOW (1000 * NS_PER_S)

/* Each key is new and stays in debt for an hour. */
static void keys_take(struct store *s, struct random *rnd, size_t n)
{
	struct charge c = {.cost = 20, .wide = STR("network")};
	struct taking t;
	uint64_t key;

	if (!bucket_rule_make(&c.rule, 20, 3600 * NS_PER_S, 20))
		return;
	for (size_t i = 0; i < n; i++) {
		key = random_u64(rnd);
		c.key = str_make((const char *)&key, sizeof(key));
		store_take(s, &c, 1, NOW, &t);
	}
}

static long rss_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = 0;

	if (f == NULL)
		return 0;
	if (fscanf(f, "%*s %ld", &pages) != 1)
		pages = 0;
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE);
}

int main(void)
{
	struct random rnd = {1};
	struct store_usage u;
	struct store *s;

	if (digest_init() != ERR_OK || store_open(&s, STORE_BYTES) != ERR_OK)
		return 1;
	printf("memory_rss_empty_bytes %ld\n", rss_bytes());
	keys_take(s, &rnd, LIVE_KEYS);
	store_usage_read(s, NOW, &u);
	printf("memory_bytes_per_key %.2f\n", (double)u.bytes / LIVE_KEYS);
	printf("memory_overflow_percent %.4f\n", 100.0 * (double)u.overflow_total / LIVE_KEYS);
	keys_take(s, &rnd, FLOOD_SOME - LIVE_KEYS);
	printf("memory_rss_1m_bytes %ld\n", rss_bytes());
	keys_take(s, &rnd, FLOOD_ALL - FLOOD_SOME);
	printf("memory_rss_20m_bytes %ld\n", rss_bytes());
	store_close(s);
	return 0;
}

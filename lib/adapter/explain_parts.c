/* SPDX-License-Identifier: MIT */
/*
 * Small pieces that the JSON form and the words of an explanation have in common.
 */
#include "adapter/explain_parts.h"

static const char *const miss_words[] = {
	[MISS_NONE] = "matched",
	[MISS_HOST] = "host",
	[MISS_METHOD] = "method",
	[MISS_PATH] = "path",
	[MISS_IDENTITY] = "identity",
	[MISS_CLIENT] = "client",
};

void explain_write_ip(struct text *t, const struct ip *ip)
{
	char buffer[IP_TEXT_BYTES];

	text_str(t, str_make(buffer, ip_print(ip, buffer)));
}

void explain_write_range(struct text *t, const struct range *range)
{
	char buffer[RANGE_TEXT_BYTES];

	text_str(t, str_make(buffer, range_print(range, buffer)));
}

void explain_write_key(struct text *t, const struct ruleset *rules, const struct client *c)
{
	uint8_t key[CLIENT_KEY_BYTES];
	char buffer[CLIENT_KEY_TEXT_BYTES];

	text_str(t, str_make(buffer, client_key_text(key, client_key(&rules->client, c, key), buffer)));
}

const char *explain_miss_z(enum rule_miss miss)
{
	return miss_words[miss];
}

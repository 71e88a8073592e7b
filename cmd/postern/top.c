/* SPDX-License-Identifier: MIT */
/*
 * A terminal view of /top. On a terminal each picture takes the place of the last one and is cut to its height; elsewhere they
 * follow one another. Keys are text that clients have a hand in, so they are escaped before they get to a terminal.
 */
#include "verb.h"

#include "fetch.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SHOWN_BYTES 64
#define LINES_BESIDE_ROWS 7 /* the head, two titles with theirs, and the cursor's */
#define ROWS_MAX 32

struct view {
	bool is_terminal, has_color;
	size_t rows; /* of each list */
	uint64_t allowed, denied; /* at the last picture */
	bool has_last;
};

static uint64_t number_member(const struct json *object, const char *name_z)
{
	const struct json *v = json_kind(object) == JSON_KIND_OBJECT ? json_member(object, name_z) : NULL;

	return v != NULL && json_kind(v) == JSON_KIND_INTEGER ? (uint64_t)json_integer_of(v) : 0;
}

static void print_text(const struct json *object, const char *name_z, int width)
{
	const struct json *v = json_kind(object) == JSON_KIND_OBJECT ? json_member(object, name_z) : NULL;
	char buffer[4 * SHOWN_BYTES + 4];
	struct text t;

	text_init(&t, buffer, sizeof(buffer));
	if (v != NULL && json_kind(v) == JSON_KIND_STRING)
		text_visible(&t, json_text(v), SHOWN_BYTES);
	printf("%-*.*s", width, STR_ARG(text_view(&t)));
}

static const char *style(const struct view *v, const char *code_z)
{
	return v->has_color ? code_z : "";
}

static void print_head(struct view *v, const struct json *root)
{
	const struct json *decisions = json_member(root, "decisions");
	uint64_t allowed = decisions != NULL ? number_member(decisions, "allow") : 0;
	uint64_t denied = decisions != NULL ? number_member(decisions, "deny") : 0;
	uint64_t uptime_s = number_member(root, "uptime_s");

	printf("%spostern ", style(v, "\x1b[1m"));
	print_text(root, "version", 0);
	printf("%s  up %llu:%02llu:%02llu  allowed %llu  denied %llu", style(v, "\x1b[0m"),
		(unsigned long long)(uptime_s / 3600), (unsigned long long)(uptime_s / 60 % 60),
		(unsigned long long)(uptime_s % 60), (unsigned long long)allowed, (unsigned long long)denied);
	if (v->has_last && allowed >= v->allowed && denied >= v->denied)
		printf("  in the last second %llu and %llu", (unsigned long long)(allowed - v->allowed),
			(unsigned long long)(denied - v->denied));
	putchar('\n');
	v->has_last = true;
	v->allowed = allowed;
	v->denied = denied;
}

static void print_list(const struct view *v, const struct json *list, const char *title_z, const char *count_z)
{
	printf("\n%s%-46s%-24s%10s%s\n", style(v, "\x1b[1m"), title_z, "rule", count_z, style(v, "\x1b[0m"));
	if (list == NULL || json_kind(list) != JSON_KIND_ARRAY || json_count(list) == 0) {
		puts("nobody");
		return;
	}
	for (size_t i = 0; i < json_count(list) && i < v->rows; i++) {
		const struct json *row = json_item(list, i);

		print_text(row, "key", 46);
		print_text(row, "rule", 24);
		printf("%10llu\n", (unsigned long long)number_member(row, count_z));
	}
}

/* Half of what the window's height leaves. */
static void fit(struct view *v)
{
	struct winsize window;

	v->rows = ROWS_MAX;
	if (!v->is_terminal || ioctl(STDOUT_FILENO, TIOCGWINSZ, &window) != 0 || window.ws_row == 0)
		return;
	v->rows = window.ws_row > LINES_BESIDE_ROWS + 1 ? (window.ws_row - LINES_BESIDE_ROWS) / 2u : 1;
}

static int show(struct view *v, const struct endpoint *admin, bool replace)
{
	struct json *root;
	int code = fetch_admin("top", admin, STR("/top"), &root);

	if (code != EXIT_DONE)
		return code;
	if (json_kind(root) != JSON_KIND_OBJECT) {
		json_free(root);
		fputs("postern top: the answer is none of postern's\n", stderr);
		return EXIT_UNREACHABLE;
	}
	fit(v);
	if (replace)
		fputs("\x1b[H\x1b[J", stdout);
	print_head(v, root);
	print_list(v, json_member(root, "refused"), "refused", "refusals");
	print_list(v, json_member(root, "busiest"), "busiest", "requests");
	json_free(root);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_NOT_NOW;
}

int verb_top(int argc, char **argv)
{
	const char *addr_z = NULL, *term_z = getenv("TERM"), *no_color_z = getenv("NO_COLOR");
	struct view v = {.is_terminal = isatty(STDOUT_FILENO) == 1};
	struct endpoint admin;
	bool once = false;
	int code;

	v.has_color = v.is_terminal && (no_color_z == NULL || no_color_z[0] == '\0') &&
		      (term_z == NULL || strcmp(term_z, "dumb") != 0);
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--once") == 0)
			once = true;
		else if (argv[i][0] == '-' || addr_z != NULL)
			return verb_usage_error("top", "unexpected \"%s\"", argv[i]);
		else
			addr_z = argv[i];
	}
	code = fetch_admin_address("top", addr_z != NULL ? addr_z : ADMIN_DEFAULT, &admin);
	if (code == EXIT_DONE)
		code = show(&v, &admin, false);
	while (code == EXIT_DONE && !once) {
		sleep(1);
		if (!v.is_terminal)
			putchar('\n');
		code = show(&v, &admin, v.is_terminal);
	}
	return code;
}

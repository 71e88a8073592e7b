/* SPDX-License-Identifier: MIT */
/*
 * fault: what is wrong with a configuration, for people and for programs. Set-up only, never on the decision path.
 *
 * Model      A list that grows: one pass names every fault, not the first only. Errors and warnings in one list, in the
 *            order found.
 * Ownership  The list owns its items; fault_list_done frees them.
 * Threads    confined.
 * Errors     if memory runs out the fault is counted but not kept.
 */
#ifndef POSTERN_BASE_FAULT_H
#define POSTERN_BASE_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum fault_severity { FAULT_ERROR, FAULT_WARNING };

struct fault {
	enum fault_severity severity;
	const char *code;       /* stable snake_case word; static */
	char pointer_z[256];    /* JSON pointer, "" for the whole document or where there is none */
	unsigned line, column;  /* 0: unknown */
	char file_z[256];       /* "" for quick flags */
	char text_z[512];       /* one sentence, plain ASCII */
};

struct fault_list {
	struct fault *items;
	size_t n, cap;
	size_t n_errors, n_warnings;
};

void fault_list_init(struct fault_list *list);
void fault_list_done(struct fault_list *list);

/* Adds one; text is printf's. Returns the item to complete (line, file), or NULL without memory. */
struct fault *fault_add(struct fault_list *list, enum fault_severity severity, const char *code, const char *pointer_z,
	const char *format, ...) __attribute__((format(printf, 5, 6)));

/* "postern.json:14:7: /rules/2/limts: error: unknown member (did you mean \"limits\"?) [unknown_member]" into out,
 * without what is unknown. Returns the length, cut to size-1. */
size_t fault_print(const struct fault *f, char *out, size_t size);

#endif

/* SPDX-License-Identifier: MIT */
/*
 * fuzz: what each fuzz target offers, to libFuzzer or to replay.c.
 *
 * Model      One input a call; a target aborts (must) where a promise is broken, and always returns 0.
 * Ownership  data is the caller's and may be empty.
 */
#ifndef POSTERN_FUZZ_H
#define POSTERN_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/* Device memory: host blocks with poison and guards, bounds-checked copies, a count of what is alive. */
#define _GNU_SOURCE
#include "double.h"

#include <stdlib.h>
#include <string.h>

#define GUARD 64
#define ALIGN 256
#define POISON 0xCD
#define GUARD_BYTE 0xA5
#define LIMIT ((size_t)1 << 32)

typedef struct block {
    struct block *next;
    uint8_t *base; /* what the user has */
    size_t size;
    uint8_t *raw;
} block;

static block *blocks;
static size_t live_blocks, live_bytes;

static block *find(const void *address) {
    const uint8_t *p = address;
    for (block *b = blocks; b; b = b->next)
        if (p >= b->base && p < b->base + (b->size ? b->size : 1)) return b;
    return NULL;
}

static int guards_intact(const block *b) {
    for (size_t i = 0; i < GUARD; i++)
        if (b->base[-1 - (ptrdiff_t)i] != GUARD_BYTE || b->base[b->size + i] != GUARD_BYTE) return 0;
    return 1;
}

int memory_owns(const void *address) { return find(address) != NULL; }

int memory_check(const void *address, size_t size, const char *what) {
    block *b = find(address);
    if (!b) return fail(HIP_INVALID_VALUE, "%s %p is not in device memory", what, address);
    size_t left = b->size - (size_t)((const uint8_t *)address - b->base);
    if (size > left)
        return fail(HIP_INVALID_VALUE, "%s: %zu bytes wanted, %zu left in the allocation of %zu", what, size, left, b->size);
    return HIP_SUCCESS;
}

int memory_guards(void) {
    for (block *b = blocks; b; b = b->next)
        if (!guards_intact(b))
            return fail(HIP_ILLEGAL_ADDRESS, "a write outside the allocation of %zu bytes at %p", b->size, (void *)b->base);
    return HIP_SUCCESS;
}

static int ready(void) {
    const device *d = current();
    return d->count < 1 ? fail(HIP_NO_DEVICE, "no device") : HIP_SUCCESS;
}

EXPORT int hipMalloc(void **out, size_t size) {
    lock();
    int status = ready();
    if (!status && !out) status = fail(HIP_INVALID_VALUE, "hipMalloc without a place for the result");
    if (!status && size > LIMIT - live_bytes) status = fail(HIP_OUT_OF_MEMORY, "%zu bytes wanted", size);
    if (!status) *out = NULL;
    if (!status && size) {
        block *b = malloc(sizeof *b);
        size_t room = (GUARD + ALIGN - 1) / ALIGN * ALIGN;
        uint8_t *raw = b ? aligned_alloc(ALIGN, (room + size + GUARD + ALIGN - 1) / ALIGN * ALIGN) : NULL;
        if (!raw) {
            free(b);
            status = fail(HIP_OUT_OF_MEMORY, "the host has no %zu bytes", size);
        } else {
            *b = (block){blocks, raw + room, size, raw};
            memset(b->base - GUARD, GUARD_BYTE, GUARD);
            memset(b->base, POISON, size);
            memset(b->base + size, GUARD_BYTE, GUARD);
            blocks = b;
            live_blocks++;
            live_bytes += size;
            *out = b->base;
        }
    }
    unlock();
    return status;
}

EXPORT int hipFree(void *address) {
    lock();
    int status = address ? ready() : HIP_SUCCESS;
    if (!status && address) {
        block **link = &blocks;
        while (*link && (*link)->base != address) link = &(*link)->next;
        if (!*link) {
            status = fail(HIP_INVALID_VALUE, "%p is not the start of an allocation (freed twice?)", address);
        } else {
            block *b = *link;
            if (!guards_intact(b)) status = fail(HIP_ILLEGAL_ADDRESS, "freed block at %p was written past its end", address);
            *link = b->next;
            live_blocks--;
            live_bytes -= b->size;
            free(b->raw);
            free(b);
        }
    }
    unlock();
    return status;
}

EXPORT int hipMemGetInfo(size_t *free_bytes, size_t *total) {
    lock();
    int status = ready();
    if (!status && free_bytes) *free_bytes = LIMIT - live_bytes;
    if (!status && total) *total = LIMIT;
    unlock();
    return status;
}

/* kind: 0 host to host, 1 host to device, 2 device to host, 3 device to device, 4 by the pointers */
EXPORT int hipMemcpy(void *dst, const void *src, size_t size, int kind) {
    lock();
    int status = ready();
    if (!status && (kind < 0 || kind > 4)) status = fail(HIP_INVALID_MEMCPY_DIRECTION, "copy kind %d", kind);
    if (!status && size) {
        int to = kind == 4 ? memory_owns(dst) : kind == 1 || kind == 3;
        int from = kind == 4 ? memory_owns(src) : kind == 2 || kind == 3;
        if (!dst || !src) status = fail(HIP_INVALID_VALUE, "copy with a null pointer");
        if (!status && to) status = memory_check(dst, size, "destination of a copy");
        if (!status && from) status = memory_check(src, size, "source of a copy");
        if (!status && !to && memory_owns(dst)) status = fail(HIP_INVALID_VALUE, "host destination is device memory");
        if (!status && !from && memory_owns(src)) status = fail(HIP_INVALID_VALUE, "host source is device memory");
        if (!status) memmove(dst, src, size);
    }
    unlock();
    return status;
}

EXPORT int hipMemcpyAsync(void *dst, const void *src, size_t size, int kind, void *stream) {
    (void)stream;
    return hipMemcpy(dst, src, size, kind);
}

EXPORT int hipMemset(void *dst, int value, size_t size) {
    lock();
    int status = ready();
    if (!status && size) status = memory_check(dst, size, "destination of a fill");
    if (!status && size) memset(dst, value, size);
    unlock();
    return status;
}

EXPORT int hipMemsetAsync(void *dst, int value, size_t size, void *stream) {
    (void)stream;
    return hipMemset(dst, value, size);
}

/* For tests. */

EXPORT size_t hipdouble_live_allocations(void) {
    lock();
    size_t n = live_blocks;
    unlock();
    return n;
}

/* Bytes from an address to the end of its allocation; 0 where there is none. */
EXPORT size_t hipdouble_bytes_left(const void *address) {
    lock();
    block *b = find(address);
    size_t n = b ? b->size - (size_t)((const uint8_t *)address - b->base) : 0;
    unlock();
    return n;
}

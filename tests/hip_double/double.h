/* A stand-in for libamdhip64.so: the part of HIP's C ABI that hip-python and flyllvm use, without a GPU.
 *
 * It checks what a real runtime checks (ELF, target, kernel, launch limits) and what a real runtime silently trusts
 * (argument bytes, copies past an allocation, writes past it), and hands each launch to a callback that computes the
 * result.  It encodes a reading of HIP: it cannot prove that a real loader accepts an object.
 */
#ifndef HIP_DOUBLE_H
#define HIP_DOUBLE_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum {
    HIP_SUCCESS = 0,
    HIP_INVALID_VALUE = 1,
    HIP_OUT_OF_MEMORY = 2,
    HIP_NOT_INITIALIZED = 3,
    HIP_INVALID_CONFIGURATION = 9,
    HIP_INVALID_DEVICE_POINTER = 17,
    HIP_INVALID_MEMCPY_DIRECTION = 21,
    HIP_NO_DEVICE = 100,
    HIP_INVALID_DEVICE = 101,
    HIP_INVALID_IMAGE = 200,
    HIP_NO_BINARY_FOR_GPU = 209,
    HIP_INVALID_HANDLE = 400,
    HIP_NOT_FOUND = 500,
    HIP_ILLEGAL_ADDRESS = 700,
    HIP_LAUNCH_FAILURE = 719,
};

/* What a chip is, as far as a launch can see it. */
typedef struct {
    const char *name;
    uint32_t mach, wave, units, lds;
} chip;

/* The modelled device: chip and target features (-1 not there, 0 off, 1 on). */
typedef struct {
    const chip *chip;
    char arch[256];
    int xnack, sramecc, count;
} device;

typedef struct {
    uint32_t offset, size;
    char kind[40];
} argument;

typedef struct module module;

typedef struct {
    uint32_t magic;
    module *home;
    char *name, *symbol;
    uint32_t kernarg_size, explicit_size, lds, scratch, vgprs, max_threads, wave;
    argument *args;
    uint32_t arg_count;
    uint64_t descriptor; /* address in the loaded image */
} kernel;

struct module {
    uint32_t magic;
    module *next;
    uint8_t *image; /* the file */
    size_t image_size;
    uint8_t *memory; /* its segments as loaded */
    size_t memory_size;
    kernel *kernels;
    uint32_t kernel_count;
};

/* One launch, as the callback sees it; grid in workgroups, block in work items, sizes in bytes. */
typedef struct {
    const char *name;
    const void *image;
    size_t image_size;
    uint32_t grid[3], block[3], shared, kernarg_size;
    const void *kernarg;
    void *stream;
    uint64_t descriptor;
    uint32_t explicit_size;
} launch;

typedef int (*launch_callback)(const launch *);

/* api.c: locking, messages, the device */
void lock(void);
void unlock(void);
int fail(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));
const device *current(void);

/* module.c */
module *module_read(const uint8_t *data, size_t size, const device *on, int *error);
void module_free(module *m);

/* memory.c; all of them with the lock held */
int memory_check(const void *address, size_t size, const char *what);
int memory_owns(const void *address);
int memory_guards(void);

#define KERNEL_MAGIC 0x4b45524eu
#define MODULE_MAGIC 0x4d4f4455u

#endif

/* Devices, modules, launches, streams and events; and what tests use to steer the double. */
#define _GNU_SOURCE
#include "double.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char message[512] = "no error";
static device the_device;
static int configured, initialised;
static module *modules;
static const void *registered;
static size_t registered_size;
static launch_callback callback;
static size_t launches;

void lock(void) { pthread_mutex_lock(&mutex); }
void unlock(void) { pthread_mutex_unlock(&mutex); }

int fail(int code, const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(message, sizeof message, format, list);
    va_end(list);
    return code;
}

/* The device. */

static const chip chips[] = {
    {"gfx908", 0x30, 64, 120, 65536},  {"gfx90a", 0x3f, 64, 104, 65536},  {"gfx942", 0x4c, 64, 304, 65536},
    {"gfx950", 0x4f, 64, 256, 163840}, {"gfx1030", 0x36, 32, 40, 65536},  {"gfx1100", 0x41, 32, 48, 65536},
    {"gfx1200", 0x48, 32, 32, 65536},  {"gfx1201", 0x4e, 32, 64, 65536},  {"gfx1250", 0x49, 32, 256, 327680},
};

static int feature(const char *arch, const char *name) {
    const char *found = strstr(arch, name);
    return found ? found[strlen(name)] == '+' : -1;
}

static int configure(const char *arch, int count) {
    size_t length = strcspn(arch, ":");
    for (size_t i = 0; i < sizeof chips / sizeof *chips; i++) {
        if (strlen(chips[i].name) != length || strncmp(chips[i].name, arch, length)) continue;
        the_device = (device){&chips[i], "", feature(arch, ":xnack"), feature(arch, ":sramecc"), count};
        snprintf(the_device.arch, sizeof the_device.arch, "%s", arch);
        configured = 1;
        return HIP_SUCCESS;
    }
    return fail(HIP_INVALID_VALUE, "unknown arch %s", arch);
}

const device *current(void) {
    if (!configured) {
        const char *arch = getenv("FLYLLVM_DOUBLE_ARCH"), *count = getenv("FLYLLVM_DOUBLE_DEVICES");
        if (configure(arch ? arch : "gfx942:sramecc+:xnack-", count ? atoi(count) : 1))
            configure("gfx942:sramecc+:xnack-", 0);
    }
    return &the_device;
}

static int ready(void) {
    if (current()->count < 1) return fail(HIP_NO_DEVICE, "no device");
    return initialised ? HIP_SUCCESS : fail(HIP_NOT_INITIALIZED, "hipInit was not called");
}

EXPORT int hipInit(unsigned flags) {
    lock();
    int status = flags ? fail(HIP_INVALID_VALUE, "hipInit with flags") : HIP_SUCCESS;
    if (!status && current()->count < 1) status = fail(HIP_NO_DEVICE, "no device");
    if (!status) initialised = 1;
    unlock();
    return status;
}

EXPORT int hipGetDeviceCount(int *count) {
    lock();
    *count = current()->count;
    int status = *count < 1 ? fail(HIP_NO_DEVICE, "no device") : HIP_SUCCESS;
    unlock();
    return status;
}

static int check_device(int id) {
    int status = ready();
    if (!status && (id < 0 || id >= current()->count)) status = fail(HIP_INVALID_DEVICE, "device %d", id);
    return status;
}

static _Thread_local int selected;

EXPORT int hipSetDevice(int id) {
    lock();
    int status = check_device(id);
    if (!status) selected = id;
    unlock();
    return status;
}

EXPORT int hipGetDevice(int *id) {
    lock();
    int status = ready();
    *id = selected;
    unlock();
    return status;
}

EXPORT int hipRuntimeGetVersion(int *version) {
    *version = 60300000;
    return HIP_SUCCESS;
}

EXPORT int hipDriverGetVersion(int *version) { return hipRuntimeGetVersion(version); }

static void put(uint8_t *props, size_t offset, uint32_t value) { memcpy(props + offset, &value, sizeof value); }

/* hipDeviceProp_tR0600: 1472 bytes; offsets by HIP 6.0. */
EXPORT int hipGetDevicePropertiesR0600(void *out, int id) {
    lock();
    int status = check_device(id);
    if (!status) {
        const device *d = current();
        uint8_t *props = memset(out, 0, 1472);
        uint64_t total = (uint64_t)1 << 32, lds = d->chip->lds;
        snprintf((char *)props, 256, "flyllvm double of %s", d->chip->name);
        memcpy(props + 288, &total, 8);
        memcpy(props + 296, &lds, 8);
        put(props, 304, 65536);
        put(props, 308, d->chip->wave);
        put(props, 320, 1024);
        for (size_t i = 0; i < 3; i++) {
            put(props, 324 + 4 * i, 1024);
            put(props, 336 + 4 * i, i ? 65536 : 2147483647);
        }
        put(props, 348, 1000000);
        put(props, 360, 9);
        put(props, 388, d->chip->units);
        put(props, 624, 2048);
        memcpy(props + 640, &lds, 8);
        memcpy(props + 1160, d->arch, sizeof d->arch);
    }
    unlock();
    return status;
}

EXPORT int hipDeviceSynchronize(void) {
    lock();
    int status = ready();
    unlock();
    return status;
}

/* Modules. */

/* Length of an image out of its own headers: what a runtime without a length argument has to trust. */
static size_t length_of(const uint8_t *data) {
    uint64_t shoff;
    uint16_t entsize, count;
    if (memcmp(data, "\177ELF", 4)) return 4;
    memcpy(&shoff, data + 40, 8);
    memcpy(&entsize, data + 58, 2);
    memcpy(&count, data + 60, 2);
    return (size_t)(shoff + (uint64_t)entsize * count);
}

EXPORT int hipModuleLoadData(void **out, const void *image) {
    lock();
    int status = ready();
    if (!status && (!out || !image)) status = fail(HIP_INVALID_VALUE, "no image");
    if (!status) {
        size_t size = image == registered ? registered_size : length_of(image);
        module *m = module_read(image, size, current(), &status);
        if (m) {
            m->next = modules;
            modules = m;
            *out = m;
        }
    }
    unlock();
    return status;
}

static module *known_module(const void *handle) {
    for (module *m = modules; m; m = m->next)
        if (m == handle) return m;
    return NULL;
}

static kernel *known_kernel(const void *handle) {
    for (module *m = modules; m; m = m->next)
        for (uint32_t i = 0; i < m->kernel_count; i++)
            if (&m->kernels[i] == handle) return &m->kernels[i];
    return NULL;
}

EXPORT int hipModuleUnload(void *handle) {
    lock();
    int status = ready();
    if (!status) {
        module **link = &modules;
        while (*link && *link != handle) link = &(*link)->next;
        module *m = *link;
        if (m) {
            *link = m->next;
            module_free(m);
        } else status = fail(HIP_INVALID_HANDLE, "%p is no module", handle);
    }
    unlock();
    return status;
}

EXPORT int hipModuleGetFunction(void **out, void *handle, const char *name) {
    lock();
    int status = ready();
    module *m = status ? NULL : known_module(handle);
    if (!status && !m) status = fail(HIP_INVALID_HANDLE, "%p is no module", handle);
    if (!status) {
        *out = NULL;
        for (uint32_t i = 0; i < m->kernel_count; i++)
            if (!strcmp(m->kernels[i].name, name)) *out = &m->kernels[i];
        if (!*out) status = fail(HIP_NOT_FOUND, "no kernel %s in the module", name);
    }
    unlock();
    return status;
}

EXPORT int hipFuncGetAttribute(int *value, int attribute, const void *function) {
    lock();
    int status = ready();
    const kernel *k = status ? NULL : known_kernel(function);
    if (!status && !k) status = fail(HIP_INVALID_HANDLE, "%p is no function", function);
    if (!status) switch (attribute) {
        case 0: *value = (int)k->max_threads; break;
        case 1: *value = (int)k->lds; break;
        case 3: *value = (int)k->scratch; break;
        case 4: *value = (int)k->vgprs; break;
        case 8: *value = (int)(current()->chip->lds - k->lds); break;
        default: status = fail(HIP_INVALID_VALUE, "attribute %d", attribute);
    }
    unlock();
    return status;
}

/* Launch. */

static int check_shape(const kernel *k, const uint32_t *grid, const uint32_t *block, uint32_t shared) {
    uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i]) return fail(HIP_INVALID_CONFIGURATION, "a dimension of the launch is zero");
        if ((uint64_t)grid[i] * block[i] > UINT32_MAX || block[i] > 1024)
            return fail(HIP_INVALID_CONFIGURATION, "dimension %d: %u workgroups of %u", i, grid[i], block[i]);
    }
    if (threads > 1024) return fail(HIP_INVALID_CONFIGURATION, "%llu work items in a workgroup", (unsigned long long)threads);
    if (threads > k->max_threads)
        return fail(HIP_LAUNCH_FAILURE, "%llu work items, %s was compiled for at most %u", (unsigned long long)threads, k->name,
                    k->max_threads);
    if ((uint64_t)shared + k->lds > current()->chip->lds)
        return fail(HIP_INVALID_VALUE, "%u + %u bytes of LDS, the device has %u", k->lds, shared, current()->chip->lds);
    return HIP_SUCCESS;
}

static int explicit_bytes(const kernel *k, void **params, void **extra, uint8_t *segment) {
    if (params && extra) return fail(HIP_INVALID_VALUE, "kernelParams and extra together");
    if (!k->explicit_size) return HIP_SUCCESS;
    if (params) {
        for (uint32_t i = 0, n = 0; i < k->arg_count; i++) {
            const argument *a = &k->args[i];
            if (strncmp(a->kind, "hidden_", 7)) memcpy(segment + a->offset, params[n++], a->size);
        }
        return HIP_SUCCESS;
    }
    if (!extra) return fail(HIP_INVALID_VALUE, "%s wants arguments and has none", k->name);
    const void *buffer = NULL;
    size_t size = 0;
    for (int i = 0; extra[i] != (void *)3; i += 2) {
        if (i > 4 || (extra[i] != (void *)1 && extra[i] != (void *)2) || !extra[i + 1])
            return fail(HIP_INVALID_VALUE, "malformed extra");
        if (extra[i] == (void *)1) buffer = extra[i + 1];
        else memcpy(&size, extra[i + 1], sizeof size);
    }
    if (!buffer || size != k->explicit_size)
        return fail(HIP_INVALID_VALUE, "%zu argument bytes given, %s wants %u", size, k->name, k->explicit_size);
    memcpy(segment, buffer, size);
    return HIP_SUCCESS;
}

static void hidden_bytes(const kernel *k, const uint32_t *grid, const uint32_t *block, uint32_t shared, uint8_t *segment) {
    for (uint32_t i = 0; i < k->arg_count; i++) {
        const argument *a = &k->args[i];
        uint64_t value = 0;
        int axis = a->kind[0] ? a->kind[strlen(a->kind) - 1] - 'x' : 0;
        if (axis < 0 || axis > 2) axis = 0;
        if (!strncmp(a->kind, "hidden_block_count_", 19)) value = grid[axis];
        else if (!strncmp(a->kind, "hidden_group_size_", 18)) value = block[axis];
        else if (!strcmp(a->kind, "hidden_grid_dims")) value = 3;
        else if (!strcmp(a->kind, "hidden_dynamic_lds_size")) value = shared;
        if (value && a->size <= sizeof value) memcpy(segment + a->offset, &value, a->size);
    }
}

/* Every pointer argument that is not null lies in a live allocation. */
static int check_pointers(const kernel *k, const uint8_t *segment) {
    for (uint32_t i = 0; i < k->arg_count; i++) {
        const argument *a = &k->args[i];
        void *address = NULL;
        if (strcmp(a->kind, "global_buffer") || a->size != sizeof address) continue;
        memcpy(&address, segment + a->offset, sizeof address);
        if (address && !memory_owns(address))
            return fail(HIP_ILLEGAL_ADDRESS, "argument %u of %s: %p is not in device memory", i, k->name, address);
    }
    return HIP_SUCCESS;
}

EXPORT int hipModuleLaunchKernel(void *function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by, uint32_t bz,
                                 uint32_t shared, void *stream, void **params, void **extra) {
    uint32_t grid[3] = {gx, gy, gz}, block[3] = {bx, by, bz};
    lock();
    int status = ready();
    const kernel *k = status ? NULL : known_kernel(function);
    if (!status && !k) status = fail(HIP_INVALID_IMAGE, "%p is no function", function);
    if (!status) status = check_shape(k, grid, block, shared);
    uint8_t *segment = status ? NULL : calloc(1, k->kernarg_size ? k->kernarg_size : 1);
    if (!status && !segment) status = fail(HIP_OUT_OF_MEMORY, "no memory for the arguments");
    if (!status) status = explicit_bytes(k, params, extra, segment);
    if (!status) {
        hidden_bytes(k, grid, block, shared, segment);
        status = check_pointers(k, segment);
    }
    if (!status) {
        launch call = {k->name, k->home->image, k->home->image_size, {gx, gy, gz}, {bx, by, bz}, shared,
                       k->kernarg_size, segment, stream, k->descriptor, k->explicit_size};
        launch_callback run = callback;
        launches++;
        unlock(); /* the callback may allocate */
        int result = run ? run(&call) : 0;
        lock();
        status = result ? fail(result, "the callback ended with %d", result) : memory_guards();
    }
    free(segment);
    unlock();
    return status;
}

/* Streams and events: everything is done when a call returns. */

#define STREAM 0x57524541u
#define EVENT 0x45564e54u

typedef struct {
    uint32_t kind;
    int recorded;
    struct timespec at;
} handle;

static size_t live_handles;

static int make(void **out, uint32_t kind) {
    lock();
    int status = ready();
    handle *h = status ? NULL : calloc(1, sizeof *h);
    if (h) {
        h->kind = kind;
        *out = h;
        live_handles++;
    }
    unlock();
    return status ? status : h ? HIP_SUCCESS : HIP_OUT_OF_MEMORY;
}

static int is_a(const void *h, uint32_t kind) { return h && ((const handle *)h)->kind == kind; }

static int check(const void *h, uint32_t kind) {
    if (is_a(h, kind) || (kind == STREAM && !h)) return HIP_SUCCESS;
    return fail(HIP_INVALID_HANDLE, "%p is no %s", h, kind == STREAM ? "stream" : "event");
}

static int destroy(void *h, uint32_t kind) {
    lock();
    int status = h ? check(h, kind) : fail(HIP_INVALID_HANDLE, "null handle");
    if (!status) {
        ((handle *)h)->kind = 0;
        free(h);
        live_handles--;
    }
    unlock();
    return status;
}

EXPORT int hipStreamCreateWithFlags(void **out, unsigned flags) {
    return flags > 1 ? fail(HIP_INVALID_VALUE, "stream flags %u", flags) : make(out, STREAM);
}
EXPORT int hipStreamCreate(void **out) { return make(out, STREAM); }
EXPORT int hipStreamDestroy(void *h) { return destroy(h, STREAM); }
EXPORT int hipStreamSynchronize(void *h) { return check(h, STREAM); }
EXPORT int hipStreamQuery(void *h) { return check(h, STREAM); }
EXPORT int hipStreamWaitEvent(void *h, void *event, unsigned flags) {
    (void)flags;
    int status = check(h, STREAM);
    return status ? status : check(event, EVENT);
}
EXPORT int hipEventCreate(void **out) { return make(out, EVENT); }
EXPORT int hipEventCreateWithFlags(void **out, unsigned flags) {
    (void)flags;
    return make(out, EVENT);
}
EXPORT int hipEventDestroy(void *h) { return destroy(h, EVENT); }

EXPORT int hipEventRecord(void *h, void *stream) {
    int status = check(h, EVENT);
    if (!status) status = check(stream, STREAM);
    if (!status) {
        clock_gettime(CLOCK_MONOTONIC, &((handle *)h)->at);
        ((handle *)h)->recorded = 1;
    }
    return status;
}

EXPORT int hipEventSynchronize(void *h) { return check(h, EVENT); }
EXPORT int hipEventQuery(void *h) { return check(h, EVENT); }

EXPORT int hipEventElapsedTime(float *ms, void *from, void *to) {
    int status = check(from, EVENT);
    if (!status) status = check(to, EVENT);
    if (status) return status;
    handle *a = from, *b = to;
    if (!a->recorded || !b->recorded) return fail(HIP_INVALID_HANDLE, "an event was not recorded");
    *ms = (float)(b->at.tv_sec - a->at.tv_sec) * 1e3f + (float)(b->at.tv_nsec - a->at.tv_nsec) * 1e-6f;
    return HIP_SUCCESS;
}

EXPORT int hipGetLastError(void) { return HIP_SUCCESS; }
EXPORT int hipPeekAtLastError(void) { return HIP_SUCCESS; }
EXPORT const char *hipGetErrorName(int error) { return error ? "hipError" : "hipSuccess"; }
EXPORT const char *hipGetErrorString(int error) { return error ? message : "no error"; }

/* For tests. */

EXPORT int hipdouble_configure(const char *arch, int devices) {
    lock();
    int status = configure(arch, devices);
    initialised = 0;
    unlock();
    return status;
}

/* Says how long the image at an address is, so that broken headers cannot lead past its end. */
EXPORT void hipdouble_register_image(const void *image, size_t size) {
    lock();
    registered = image;
    registered_size = size;
    unlock();
}

EXPORT void hipdouble_on_launch(launch_callback run) {
    lock();
    callback = run;
    unlock();
}

EXPORT size_t hipdouble_live_modules(void) {
    size_t n = 0;
    lock();
    for (module *m = modules; m; m = m->next) n++;
    unlock();
    return n;
}

EXPORT size_t hipdouble_live_handles(void) { return live_handles; }
EXPORT size_t hipdouble_launches(void) { return launches; }
EXPORT const char *hipdouble_message(void) { return message; }

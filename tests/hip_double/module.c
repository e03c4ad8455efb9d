/* Reads a code object as a loader does; every offset is checked against the length of the image. */
#define _GNU_SOURCE
#include "double.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EM_AMD 224
#define OSABI_HSA 64
#define MAX_MEMORY ((uint64_t)1 << 28)
#define MAX_DEPTH 32

typedef struct {
    const uint8_t *data;
    size_t size;
} span;

/* A part of a span, or an empty one where it does not lie in it. */
static span part(span s, uint64_t offset, uint64_t size) {
    if (offset > s.size || size > s.size - offset) return (span){NULL, 0};
    return (span){s.data + offset, (size_t)size};
}

static int get(span s, uint64_t offset, void *out, size_t size) {
    span p = part(s, offset, size);
    if (p.data) memcpy(out, p.data, size);
    return p.data != NULL;
}

/* MessagePack: a cursor that goes bad for good at the first broken byte. */

typedef struct {
    const uint8_t *p, *end;
    int bad;
} cursor;

static uint64_t take(cursor *c, size_t n) {
    uint64_t value = 0;
    if (c->bad || n > (size_t)(c->end - c->p)) {
        c->bad = 1;
        return 0;
    }
    for (size_t i = 0; i < n; i++) value = value << 8 | *c->p++;
    return value;
}

/* Count of a map ('m') or list ('l'). */
static uint32_t container(cursor *c, char want) {
    unsigned code = (unsigned)take(c, 1), small = want == 'm' ? 0x80 : 0x90, wide = want == 'm' ? 0xde : 0xdc;
    uint64_t n = 0;
    if ((code & 0xf0) == small) n = code & 15;
    else if (code == wide) n = take(c, 2);
    else if (code == wide + 1) n = take(c, 4);
    else c->bad = 1;
    if (c->bad || n > (uint64_t)(c->end - c->p)) {
        c->bad = 1;
        return 0;
    }
    return (uint32_t)n;
}

static span text(cursor *c) {
    unsigned code = (unsigned)take(c, 1);
    uint64_t n = 0;
    if ((code & 0xe0) == 0xa0) n = code & 31;
    else if (code >= 0xd9 && code <= 0xdb) n = take(c, (size_t)1 << (code - 0xd9));
    else c->bad = 1;
    if (c->bad || n > (uint64_t)(c->end - c->p)) {
        c->bad = 1;
        return (span){NULL, 0};
    }
    span s = {c->p, (size_t)n};
    c->p += n;
    return s;
}

static uint32_t number(cursor *c) {
    unsigned code = (unsigned)take(c, 1);
    uint64_t value = code;
    if (code >= 0xcc && code <= 0xcf) value = take(c, (size_t)1 << (code - 0xcc));
    else if (code == 0xc2 || code == 0xc3) value = code - 0xc2;
    else if (code > 0x7f) c->bad = 1;
    if (value > UINT32_MAX) c->bad = 1;
    return c->bad ? 0 : (uint32_t)value;
}

static void skip(cursor *c, int depth) {
    if (c->bad || c->p == c->end || depth > MAX_DEPTH) {
        c->bad = 1;
        return;
    }
    unsigned code = *c->p;
    if ((code & 0xf0) == 0x80 || code == 0xde || code == 0xdf) {
        for (uint32_t n = container(c, 'm'); n && !c->bad; n--) skip(c, depth + 1), skip(c, depth + 1);
    } else if ((code & 0xf0) == 0x90 || code == 0xdc || code == 0xdd) {
        for (uint32_t n = container(c, 'l'); n && !c->bad; n--) skip(c, depth + 1);
    } else if ((code & 0xe0) == 0xa0 || (code >= 0xd9 && code <= 0xdb)) {
        text(c);
    } else {
        static const uint8_t widths[] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8}; /* 0xca .. 0xd3 */
        take(c, 1);
        if (code >= 0xca && code <= 0xd3) take(c, widths[code - 0xca]);
        else if (code > 0x7f && code < 0xe0 && code != 0xc0 && code != 0xc2 && code != 0xc3) c->bad = 1;
    }
}

static int is(span s, const char *word) { return s.size == strlen(word) && s.data && !memcmp(s.data, word, s.size); }

static char *copy(span s) {
    char *t = calloc(1, s.size + 1);
    if (t && s.size) memcpy(t, s.data, s.size);
    return t;
}

static void read_args(cursor *c, kernel *k) {
    uint32_t count = container(c, 'l');
    k->args = calloc(count ? count : 1, sizeof *k->args);
    if (!k->args) c->bad = 1;
    for (; k->arg_count < count && !c->bad; k->arg_count++) {
        argument *a = &k->args[k->arg_count];
        for (uint32_t n = container(c, 'm'); n && !c->bad; n--) {
            span key = text(c);
            if (is(key, ".offset")) a->offset = number(c);
            else if (is(key, ".size")) a->size = number(c);
            else if (is(key, ".value_kind")) {
                span kind = text(c);
                snprintf(a->kind, sizeof a->kind, "%.*s", (int)(kind.size < 39 ? kind.size : 39), (const char *)kind.data);
            } else skip(c, 0);
        }
    }
}

static void read_kernel(cursor *c, kernel *k) {
    for (uint32_t n = container(c, 'm'); n && !c->bad; n--) {
        span key = text(c);
        if (is(key, ".name") && !k->name) k->name = copy(text(c));
        else if (is(key, ".symbol") && !k->symbol) k->symbol = copy(text(c));
        else if (is(key, ".args") && !k->args) read_args(c, k);
        else if (is(key, ".kernarg_segment_size")) k->kernarg_size = number(c);
        else if (is(key, ".group_segment_fixed_size")) k->lds = number(c);
        else if (is(key, ".private_segment_fixed_size")) k->scratch = number(c);
        else if (is(key, ".vgpr_count")) k->vgprs = number(c);
        else if (is(key, ".max_flat_workgroup_size")) k->max_threads = number(c);
        else if (is(key, ".wavefront_size")) k->wave = number(c);
        else skip(c, 0);
    }
}

static int read_metadata(module *m, span note) {
    cursor c = {note.data, note.data + note.size, 0};
    for (uint32_t n = container(&c, 'm'); n && !c.bad; n--) {
        if (!is(text(&c), "amdhsa.kernels") || m->kernels) {
            skip(&c, 0);
            continue;
        }
        uint32_t count = container(&c, 'l');
        m->kernels = calloc(count ? count : 1, sizeof *m->kernels);
        if (!m->kernels) c.bad = 1;
        for (; m->kernel_count < count && !c.bad; m->kernel_count++) read_kernel(&c, &m->kernels[m->kernel_count]);
    }
    return c.bad ? fail(HIP_INVALID_IMAGE, "the metadata is damaged") : HIP_SUCCESS;
}

static int find_metadata(module *m, span file, const Elf64_Phdr *p) {
    uint64_t at = 0;
    span notes = part(file, p->p_offset, p->p_filesz);
    Elf64_Nhdr n;
    while (get(notes, at, &n, sizeof n)) {
        uint64_t content = at + sizeof n + ((uint64_t)n.n_namesz + 3) / 4 * 4;
        span name = part(notes, at + sizeof n, n.n_namesz), body = part(notes, content, n.n_descsz);
        if (!body.data) break;
        if (n.n_type == 32 && name.size == 7 && !memcmp(name.data, "AMDGPU", 7)) return read_metadata(m, body);
        at = content + ((uint64_t)n.n_descsz + 3) / 4 * 4;
    }
    return HIP_SUCCESS;
}

/* Copies the loaded segments to where the addresses say. */
static int load(module *m, span file, const Elf64_Ehdr *e, Elf64_Phdr *dynamic) {
    Elf64_Phdr p;
    uint64_t top = 0;
    int status = HIP_SUCCESS;
    for (int pass = 0; pass < 2; pass++) {
        for (unsigned i = 0; i < e->e_phnum; i++) {
            if (!get(file, e->e_phoff + (uint64_t)i * sizeof p, &p, sizeof p))
                return fail(HIP_INVALID_IMAGE, "program header %u lies outside the image", i);
            if (pass && p.p_type == PT_DYNAMIC) *dynamic = p;
            if (pass && p.p_type == PT_NOTE && !m->kernels && (status = find_metadata(m, file, &p))) return status;
            if (p.p_type != PT_LOAD) continue;
            if (p.p_filesz > p.p_memsz || p.p_vaddr > MAX_MEMORY || p.p_memsz > MAX_MEMORY - p.p_vaddr)
                return fail(HIP_INVALID_IMAGE, "segment %u has an implausible size", i);
            span s = part(file, p.p_offset, p.p_filesz);
            if (!s.data) return fail(HIP_INVALID_IMAGE, "segment %u lies outside the image", i);
            if (pass) memcpy(m->memory + p.p_vaddr, s.data, s.size);
            if (p.p_vaddr + p.p_memsz > top) top = p.p_vaddr + p.p_memsz;
        }
        if (!pass && !(m->memory = calloc(1, top ? top : 1))) return fail(HIP_OUT_OF_MEMORY, "no memory for the module");
        m->memory_size = (size_t)top;
    }
    return HIP_SUCCESS;
}

static int executable(span file, const Elf64_Ehdr *e, uint64_t address) {
    Elf64_Phdr p;
    for (unsigned i = 0; i < e->e_phnum; i++)
        if (get(file, e->e_phoff + (uint64_t)i * sizeof p, &p, sizeof p) && p.p_type == PT_LOAD && p.p_flags & PF_X &&
            address >= p.p_vaddr && address - p.p_vaddr < p.p_memsz)
            return 1;
    return 0;
}

/* Finds the descriptor of each kernel through the dynamic symbol table and checks it. */
static int bind(module *m, span file, const Elf64_Ehdr *e, const Elf64_Phdr *dynamic) {
    span memory = {m->memory, m->memory_size};
    uint64_t symtab = 0, strtab = 0, strsz = 0, hash = 0;
    Elf64_Dyn d;
    for (uint64_t at = 0; at < dynamic->p_filesz && get(file, dynamic->p_offset + at, &d, sizeof d) && d.d_tag; at += sizeof d) {
        if (d.d_tag == DT_SYMTAB) symtab = d.d_un.d_val;
        if (d.d_tag == DT_STRTAB) strtab = d.d_un.d_val;
        if (d.d_tag == DT_STRSZ) strsz = d.d_un.d_val;
        if (d.d_tag == DT_HASH) hash = d.d_un.d_val;
    }
    uint32_t counts[2];
    span strings = part(memory, strtab, strsz);
    if (!symtab || !hash || !strings.size || !get(memory, hash, counts, sizeof counts))
        return fail(HIP_INVALID_IMAGE, "no DT_SYMTAB, DT_STRTAB or DT_HASH: the loader finds no symbol");
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        kernel *k = &m->kernels[i];
        Elf64_Sym s;
        if (!k->name || !k->symbol) return fail(HIP_INVALID_IMAGE, "kernel %u has no name or symbol", i);
        for (uint32_t j = 1; j < counts[1] && !k->descriptor; j++) {
            if (!get(memory, symtab + (uint64_t)j * sizeof s, &s, sizeof s) || s.st_name >= strings.size)
                return fail(HIP_INVALID_IMAGE, "symbol %u lies outside the image", j);
            const char *name = (const char *)strings.data + s.st_name;
            if (strnlen(name, strings.size - s.st_name) < strings.size - s.st_name && !strcmp(name, k->symbol))
                k->descriptor = s.st_size == 64 ? s.st_value : 0;
        }
        uint32_t bytes = 0;
        int64_t entry = 0;
        if (!k->descriptor || !part(memory, k->descriptor, 64).data)
            return fail(HIP_INVALID_IMAGE, "kernel %s has no descriptor %s of 64 bytes", k->name, k->symbol);
        get(memory, k->descriptor + 8, &bytes, sizeof bytes);
        get(memory, k->descriptor + 16, &entry, sizeof entry);
        uint64_t start = k->descriptor + (uint64_t)entry;
        if (bytes != k->kernarg_size || start % 256 || !executable(file, e, start))
            return fail(HIP_INVALID_IMAGE, "the descriptor of %s does not fit: entry %#llx, %u argument bytes", k->name,
                        (unsigned long long)start, bytes);
        for (uint32_t j = 0; j < k->arg_count; j++) {
            const argument *a = &k->args[j];
            if (a->size > k->kernarg_size || a->offset > k->kernarg_size - a->size)
                return fail(HIP_INVALID_IMAGE, "argument %u of %s lies outside the segment", j, k->name);
            if (strncmp(a->kind, "hidden_", 7) && a->offset + a->size > k->explicit_size)
                k->explicit_size = a->offset + a->size;
        }
        k->home = m;
        k->magic = KERNEL_MAGIC;
    }
    return HIP_SUCCESS;
}

static int covers(uint32_t generic, uint32_t mach) {
    static const uint8_t table[][3] = {{0x5f, 0x4c, 0x4f}, {0x54, 0x41, 0}, {0x59, 0x48, 0x4e}, {0x53, 0x36, 0}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i][0] == generic && (table[i][1] == mach || table[i][2] == mach)) return 1;
    return 0;
}

static int fits(const Elf64_Ehdr *e, const device *on) {
    uint32_t mach = e->e_flags & 0xff, xnack = e->e_flags >> 8 & 3, sramecc = e->e_flags >> 10 & 3;
    if (mach != on->chip->mach && !covers(mach, on->chip->mach))
        return fail(HIP_NO_BINARY_FOR_GPU, "the image is for processor %#x, the device %s is %#x", mach, on->arch, on->chip->mach);
    if ((xnack == 2 && on->xnack == 1) || (xnack == 3 && on->xnack != 1))
        return fail(HIP_NO_BINARY_FOR_GPU, "xnack of the image does not fit the device %s", on->arch);
    if ((sramecc == 2 && on->sramecc == 1) || (sramecc == 3 && on->sramecc != 1))
        return fail(HIP_NO_BINARY_FOR_GPU, "sramecc of the image does not fit the device %s", on->arch);
    return HIP_SUCCESS;
}

static int read_image(module *m, const device *on) {
    span file = {m->image, m->image_size};
    Elf64_Ehdr e;
    if (!get(file, 0, &e, sizeof e) || memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
        e.e_ident[EI_DATA] != ELFDATA2LSB || e.e_machine != EM_AMD || e.e_ident[EI_OSABI] != OSABI_HSA)
        return fail(HIP_INVALID_IMAGE, "the image is no ELF file for an AMD GPU");
    if (e.e_type != ET_DYN) return fail(HIP_INVALID_IMAGE, "the image is not linked (ELF type %u)", e.e_type);
    if (e.e_ident[EI_ABIVERSION] < 2 || e.e_ident[EI_ABIVERSION] > 4)
        return fail(HIP_INVALID_IMAGE, "ABI version %u", e.e_ident[EI_ABIVERSION]);
    if (e.e_phentsize != sizeof(Elf64_Phdr)) return fail(HIP_INVALID_IMAGE, "program headers of %u bytes", e.e_phentsize);
    int status = fits(&e, on);
    Elf64_Phdr dynamic = {0};
    if (!status) status = load(m, file, &e, &dynamic);
    return status ? status : bind(m, file, &e, &dynamic);
}

module *module_read(const uint8_t *data, size_t size, const device *on, int *error) {
    module *m = calloc(1, sizeof *m);
    if (m) m->image = malloc(size ? size : 1);
    if (!m || !m->image) {
        free(m);
        *error = fail(HIP_OUT_OF_MEMORY, "no memory for the module");
        return NULL;
    }
    memcpy(m->image, data, size);
    m->image_size = size;
    m->magic = MODULE_MAGIC;
    if ((*error = read_image(m, on))) {
        module_free(m);
        return NULL;
    }
    return m;
}

void module_free(module *m) {
    for (uint32_t i = 0; i < m->kernel_count; i++) {
        free(m->kernels[i].name);
        free(m->kernels[i].symbol);
        free(m->kernels[i].args);
    }
    m->magic = 0;
    free(m->kernels);
    free(m->memory);
    free(m->image);
    free(m);
}

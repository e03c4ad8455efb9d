/* Loads many images, each in a block of just its length: built with sanitizers, it dies at the first stray access.
 *
 * Input file: a sequence of (length as 4 bytes little endian, image).  Prints how many were loaded and refused.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int hipInit(unsigned flags);
int hipModuleLoadData(void **out, const void *image);
int hipModuleUnload(void *handle);
void hipdouble_register_image(const void *image, size_t size);

int main(int argc, char **argv) {
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    uint32_t size;
    unsigned loaded = 0, refused = 0;
    if (!file || hipInit(0)) return 2;
    while (fread(&size, sizeof size, 1, file) == 1) {
        uint8_t *image = malloc(size ? size : 1);
        void *module = NULL;
        if (!image || fread(image, 1, size, file) != size) return 2;
        hipdouble_register_image(image, size);
        if (hipModuleLoadData(&module, image)) refused++;
        else {
            loaded++;
            if (hipModuleUnload(module)) return 3;
        }
        hipdouble_register_image(NULL, 0);
        free(image);
    }
    fclose(file);
    printf("%u %u\n", loaded, refused);
    return 0;
}

/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "tags.h"

#include <string.h>

static const char layers[] = "ARIDCUO";
static const char phases[][3] = {"O", "WU", "BM", "I", "P", "C", "E", "T", "U", "IO", "TR", "CO", "R"};
#define PHASES (sizeof phases / sizeof phases[0])

size_t nntrace_itt_write_tag(char text[TAG_CAPACITY], itt_tag tag, bool subtracted) {
    static const char prefix[] = "[SUB]";
    const char *const phase = phases[phase_of(tag)];
    size_t length = 0;
    if (subtracted) {
        memcpy(text, prefix, sizeof prefix - 1);
        length = sizeof prefix - 1;
    }
    memcpy(text + length, "[NN_L", 5);
    length += 5;
    text[length++] = layers[layer_of(tag)];
    memcpy(text + length, "_P", 2);
    length += 2;
    memcpy(text + length, phase, strlen(phase));
    length += strlen(phase);
    text[length++] = ']';
    text[length] = '\0';
    return length;
}

itt_tag nntrace_itt_read_tag(const char *name) {
    const char *layer;
    size_t phase;
    if (strncmp(name, "[SUB]", 5) == 0) {
        name += 5;
    }
    if (strncmp(name, "[NN_L", 5) != 0) {
        return NO_TAG;
    }
    name += 5;
    layer = *name ? strchr(layers, *name) : NULL;
    if (!layer || strncmp(name + 1, "_P", 2) != 0) {
        return NO_TAG;
    }
    name += 3;
    for (phase = 0; phase < PHASES; ++phase) {
        const size_t length = strlen(phases[phase]);
        if (strncmp(name, phases[phase], length) == 0 && name[length] == ']') {
            return TAG((size_t)(layer - layers), phase);
        }
    }
    return NO_TAG;
}

static bool layer_may_contain(enum layer outer, enum layer inner) {
    return outer == inner || inner == UTILITY || (outer == APPLICATION && inner == RUNTIME) ||
           (outer == RUNTIME && inner == CPU) || (outer == DRIVER && inner == CPU);
}

itt_tag nntrace_itt_fitted(itt_tag around, itt_tag tag, bool *subtracted) {
    const enum layer layer = layer_of(tag);
    const enum phase outer = phase_of(around);
    enum phase phase = phase_of(tag);
    if (phase == EXECUTION && outer > BENCHMARK && outer != EXECUTION) {
        phase = outer;
    }
    *subtracted = !layer_may_contain(layer_of(around), layer) ||
                  !(phase == outer || outer <= BENCHMARK || phase == INITIALIZATION);
    return TAG(layer, phase);
}

/* The tasks of an inference engine, in the order in which OpenVINO 2026.4 shows them, its oddities included.
 * Argument: how many inferences. */

#include "itt-part.h"

static part core, plugin;
static domain *operators, *layers, *create, *execute;

static handle *name(const char *text) { return handle_create(&plugin, text); }

/* A primitive on one thread. */
static void *run_primitive(void *text) {
    task_begin(&plugin, execute, name(text));
    task_end(&plugin, execute);
    return NULL;
}

static void on_thread(void *(*work)(void *), const char *text) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, (void *)(uintptr_t)text);
    pthread_join(thread, NULL);
}

static void create_primitive(const char *text) {
    task_begin(&plugin, create, name(text));
    task_end(&plugin, create);
}

/* A layer that is a primitive, which another thread helps with. */
static void run_layer(const char *type, const char *layer, const char *primitive, int is_new) {
    domain *const threads = domain_create(&plugin, "tbb.algorithm");
    task_begin(&plugin, operators, name(type));
    task_begin(&plugin, layers, name(layer));
    if (is_new) {
        create_primitive(primitive);
    }
    task_begin(&plugin, execute, name(primitive));
    task_begin(&plugin, threads, name("parallel_for"));
    on_thread(run_primitive, primitive);
    task_end(&plugin, threads);
    task_end(&plugin, execute);
    task_end(&plugin, layers);
    task_end(&plugin, operators);
}

/* Work of the engine's thread for a compilation. */
static void *build(void *unused) {
    (void)unused;
    create_primitive("convolution");
    task_begin(&plugin, operators, name("Node::execute"));
    task_begin(&plugin, layers, name("reshape"));
    run_primitive((void *)(uintptr_t) "reorder");
    task_end(&plugin, layers);
    task_end(&plugin, operators);
    return NULL;
}

int main(int count, char **words) {
    const int inferences = count > 1 ? atoi(words[1]) : 1;
    /* Created before there is a collector, as static objects are. */
    static domain phases = {1, "ov::phases", NULL, 0, NULL, NULL};
    static domain early = {1, "tbb", NULL, 0, NULL, &phases};
    domain *pipeline, *inference;
    int is_collected, number;
    part_init(&core, 3);
    part_init(&plugin, 3);
    core.global.domain_list = &early;
    is_collected = part_load(&core);
    if (part_load(&plugin) != is_collected) {
        return 3;
    }
    /* Tasks that are left out are not even passed to the collector. */
    if (is_collected && (early.flags != 0 || domain_create(&plugin, "tbb.flow")->flags != 0 || phases.flags == 0)) {
        return 5;
    }
    pipeline = domain_create(&core, "ov::phases::inference");
    inference = domain_create(&plugin, "ov::phases::cpu::inference");
    operators = domain_create(&plugin, "ov::op::cpu::exec");
    layers = domain_create(&plugin, "ov::op::cpu::details");
    create = domain_create(&plugin, "dnnl::primitive::create");
    execute = domain_create(&plugin, "dnnl::primitive::execute");

    region_begin(&core, &phases, handle_create(&core, "Read model"));
    region_end(&core, &phases);
    /* A device that is chosen by itself: one in the other, and one end. */
    region_begin(&core, &phases, handle_create(&core, "Compile model"));
    region_begin(&core, &phases, handle_create(&core, "Compile model"));
    on_thread(build, "");
    region_end(&core, &phases);
    for (number = 0; number < inferences; ++number) {
        region_begin(&core, pipeline, handle_create(&core, "Inference::pipeline"));
        task_begin(&plugin, inference, name("infer"));
        run_layer("Convolution::execute", "conv1", "convolution", number == 0);
        run_layer("Pooling::execute", "pool1", "pooling", 0);
        task_end(&plugin, inference);
        region_end(&core, pipeline);
    }
    return 0;
}

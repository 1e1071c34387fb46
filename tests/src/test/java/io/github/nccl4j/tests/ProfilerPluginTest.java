package io.github.nccl4j.tests;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.nccl4j.library.NativeLibrary;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import org.bytedeco.javacpp.Loader;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The profiler plugin, called by a program in C++ as NCCL calls it. The program has its own description of the layouts. */
class ProfilerPluginTest {
    /** Writes the events of NCCL's versions into bytes, by their offsets. */
    private static final String DRIVER = """
            #include <dlfcn.h>
            #include <stdarg.h>
            #include <stdint.h>
            #include <stdio.h>
            #include <stdlib.h>
            #include <string.h>
            #include <unistd.h>
            #include <atomic>
            #include <string>
            #include <thread>
            #include <vector>
            struct Table {
              const char* name;
              int (*init)();
              int (*start)(void*, void**, void*);
              int (*stop)(void*);
              int (*state)(void*, int, void*);
              int (*finalize)(void*);
            };
            static int version;
            static Table* table;
            static int mask;
            static void log(int, unsigned long, const char*, int, const char* format, ...) {
              va_list arguments;
              va_start(arguments, format);
              vprintf(format, arguments);
              va_end(arguments);
              puts("");
            }
            static void* init(const char* name) {
              void* context = nullptr;
              int result = version == 4
                ? ((int (*)(void**, int*, const char*, uint64_t, int, int, int, void*))table->init)(
                      &context, &mask, name, 0x1234, 3, 8, 5, (void*)log)
                : ((int (*)(void**, uint64_t, int*, const char*, int, int, int, void*))table->init)(
                      &context, 0x1234, &mask, name, 3, 8, 5, (void*)log);
              if (result != 0) abort();
              return context;
            }
            struct Event {
              // Behind the description that a version has, there is something else.
              unsigned char bytes[256];
              template <class T> Event& put(size_t at, T value) { memcpy(bytes + at, &value, sizeof value); return *this; }
              Event(uint64_t type, void* parent) {
                memset(bytes, 0xee, sizeof bytes);
                memset(bytes, 0, 24);
                if (version == 4) bytes[0] = (unsigned char)type; else put(0, type);
                put(8, parent).put(16, 5);
              }
            };
            static void* start(void* context, Event event) {
              void* handle = (void*)0x77;
              if (table->start(context, &handle, event.bytes) != 0) abort();
              return handle;
            }
            static Event collective(uint64_t number, void* parent, void* group) {
              Event event(2, version == 4 ? group : parent);
              event.put(24, number).put(32, "AllReduce").put(56, (uint64_t)1024).put(64, 3).put(72, "ncclFloat32");
              event.put(80, (unsigned char)2).put(81, (unsigned char)16).put(88, "RING").put(96, "LL128");
              if (version > 4) event.put(104, group);
              if (version > 6) event.put(112, "variant").put(120, true).put(128, (uint64_t)99);
              return event;
            }
            static Event message(void* group) {
              Event event(4, version == 4 ? group : nullptr);
              event.put(24, "Send").put(40, "ncclInt8").put(48, (uint64_t)77).put(56, 6).put(60, (unsigned char)1);
              if (version > 4) event.put(64, group);
              if (version > 6) event.put(72, (uint64_t)98);
              return event;
            }
            static void* kernel(void* context, void* parent, int channel, uint64_t time) {
              return start(context, Event(64, parent).put(24, (unsigned char)channel).put(32, time));
            }
            static void stopKernel(void* handle, uint64_t time) {
              if (table->state(handle, 22, &time) != 0 || table->stop(handle) != 0) abort();
            }
            struct Record {
              uint32_t kind, communicator;
              uint64_t id, time, number, count, tag;
              int32_t peer;
              unsigned char channels, warps, type, untimed;
              char text[4][16];
            };
            static std::vector<Record> records(32768);
            static int (*drain)(void*, int);
            static long residentKilobytes() {
              FILE* file = fopen("/proc/self/statm", "r");
              long all, resident;
              if (fscanf(file, "%ld %ld", &all, &resident) != 2) abort();
              fclose(file);
              return resident * 4;
            }
            static void print() {
              int number = drain(records.data(), 32768);
              for (int i = 0; i < number; i++) {
                Record& r = records[i];
                if (r.time == 0) abort();
                if (r.kind == 1) printf("communicator %u %lx %.64s %lu ranks %lu nodes rank %d v%d\\n", r.communicator,
                    r.id, r.text[0], r.count, r.tag, r.peer, r.channels);
                if (r.kind == 2) printf("end %u\\n", r.communicator);
                if (r.kind == 3) printf("operation %lu of %u type %d %s %s %s %s number %lu count %lu tag %lu peer %d %d %d\\n",
                    r.id, r.communicator, r.type, r.text[0], r.text[1], r.text[2], r.text[3], r.number, r.count, r.tag,
                    r.peer, r.channels, r.warps);
                if (r.kind > 3) printf("%s %lu channel %d at %lu\\n", r.kind == 4 ? "start" : "stop", r.id, r.channels,
                    r.number);
              }
            }
            int main(int, char** argv) {
              void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
              if (!library) { puts(dlerror()); return 1; }
              version = atoi(argv[2]);
              table = (Table*)dlsym(library, ("ncclProfiler_v" + std::to_string(version)).c_str());
              drain = (int (*)(void*, int))dlsym(library, "nccl4jProfilerDrain");
              auto record = (void (*)(int))dlsym(library, "nccl4jProfilerRecord");
              auto dropped = (unsigned long long (*)())dlsym(library, "nccl4jProfilerDropped");
              std::string scenario = argv[3];
              if (argv[4]) ((void (*)(const char*))dlsym(library, "nccl4jProfilerChain"))(argv[4]);
              if (scenario == "records") {
                void* context = init("driver");
                printf("%s mask %x\\n", table->name, mask);
                if (start(context, collective(6, nullptr, nullptr))) abort();
                record(1);
                printf("mask %x\\n", mask);
                void* operation = start(context, collective(7, nullptr, nullptr));
                table->stop(operation);
                void* first = kernel(context, operation, 0, 5000);
                void* second = kernel(context, operation, 63, 5001);
                stopKernel(second, 6001);
                stopKernel(first, 6000);
                table->stop(start(context, message(nullptr)));
                if (version > 5) {
                  Event copy(1 << 12, nullptr);
                  copy.put(24, (uint64_t)3).put(32, "AllGather").put(56, (uint64_t)12).put(64, 0).put(72, "ncclInt8");
                  copy.put(80, "UC");
                  if (version > 6) copy.put(112, (uint64_t)97);
                  table->stop(start(context, copy));
                }
                // Not recorded: a group, a proxy operation, a kernel without an operation.
                if (start(context, Event(1, nullptr)) || start(context, Event(8, operation))) abort();
                if (kernel(context, nullptr, 0, 1)) abort();
                record(0);
                printf("mask %x\\n", mask);
                if (start(context, collective(8, nullptr, nullptr))) abort();
                stopKernel(kernel(context, operation, 2, 7000), 8000);
                table->finalize(context);
                print();
              } else if (scenario == "enough" || scenario == "little") {
                auto memory = (void (*)(unsigned long long))dlsym(library, "nccl4jProfilerKernelMemory");
                auto without = (int (*)())dlsym(library, "nccl4jProfilerWithoutKernels");
                memory(scenario == "enough" ? 1 : 1ull << 60);
                record(1);
                void* context = init("memory");
                table->stop(start(context, collective(7, nullptr, nullptr)));
                int taken = drain(records.data(), 32768);
                printf("mask %x, without %d, untimed %d of %d\\n", mask, without(), records[1].untimed, taken);
              } else if (scenario == "full") {
                void* context = init(nullptr);
                record(1);
                for (int i = 0; i < 40000; i++) table->stop(start(context, collective(i, nullptr, nullptr)));
                int taken = drain(records.data(), 32768);
                printf("taken %d dropped %llu, first %lu, last %lu\\n", taken, dropped(), records[1].number,
                    records[taken - 1].number);
                for (int i = 0; i < 3; i++) table->stop(start(context, collective(i, nullptr, nullptr)));
                printf("then %d dropped %llu\\n", drain(records.data(), 32768), dropped());
              } else if (scenario == "million") {
                void* context = init("million");
                record(1);
                constexpr int kThreads = 4, kEach = 250000;
                std::atomic<bool> done{false};
                unsigned long long taken = 0, operations = 0;
                long before = 0;
                std::thread reader([&] {
                  for (;;) {
                    bool last = done;
                    int number = drain(records.data(), 32768);
                    for (int i = 0; i < number; i++) operations += records[i].kind == 3;
                    taken += number;
                    if (taken > 300000 && before == 0) before = residentKilobytes();
                    if (last && number == 0) break;
                  }
                });
                std::vector<std::thread> threads;
                for (int t = 0; t < kThreads; t++) {
                  threads.emplace_back([&] {
                    for (int i = 0; i < kEach; i++) {
                      void* operation = start(context, collective(i, nullptr, nullptr));
                      table->stop(operation);
                      void* channel = kernel(context, operation, 1, 10);
                      stopKernel(channel, 20);
                      if (i % 500 == 0) usleep(200);
                    }
                  });
                }
                for (std::thread& thread : threads) thread.join();
                done = true;
                reader.join();
                long grown = residentKilobytes() - before;
                printf("all %s, grown %s\\n", taken + dropped() == 3ull * kThreads * kEach + 1 ? "counted" : "NOT counted",
                    before > 0 && grown < 1024 ? "by less than 1 MiB" : std::to_string(grown).c_str());
                fprintf(stderr, "taken %llu dropped %llu operations %llu grown %ld kB\\n", taken, dropped(), operations, grown);
              } else {
                if (scenario == "both") record(1);
                void* context = init("chained");
                printf("mask %x\\n", mask);
                void* group = start(context, Event(1, nullptr));
                void* operation = start(context, collective(1, nullptr, group));
                table->stop(operation);
                table->stop(group);
                void* one = kernel(context, operation, 1, 100);
                void* send = start(context, message(group));
                void* proxy = start(context, Event(8, operation).put(24, (int)getpid()));
                void* step = start(context, Event(16, proxy).put(24, 1));
                uint64_t size = 4096;
                table->state(step, 9, &size);
                table->stop(step);
                table->stop(proxy);
                if (one) stopKernel(one, 200);
                table->stop(send);
                table->finalize(context);
                void* other = dlopen(argv[4], RTLD_NOW);
                auto report = (void (*)())(other ? dlsym(other, "report") : nullptr);
                if (report) report();
                print();
              }
            }
            """;

    /** Another plugin, whose handles are addresses and which wants groups, collectives, sends and proxy operations. */
    private static final String OTHER = """
            #include <stdint.h>
            #include <stdio.h>
            #include <string.h>
            #define VERSION %d
            struct Handle { uint64_t magic; unsigned type; bool open; };
            static Handle handles[100];
            static int used, stops, states, contexts, finalized, wrong;
            static int begin(void** context, int* mask, const char* name, uint64_t id) {
              contexts++;
              wrong += id != 0x1234 || strcmp(name, "chained") != 0;
              *context = &contexts;
              *mask = 1 | 2 | 4 | 8 | 16;
              return 0;
            }
            #if VERSION == 4
            static int init(void** context, int* mask, const char* name, uint64_t id, int, int, int, void*) {
            #else
            static int init(void** context, uint64_t id, int* mask, const char* name, int, int, int, void*) {
            #endif
              return begin(context, mask, name, id);
            }
            static Handle* own(void* handle) {
              Handle* mine = (Handle*)handle;
              bool ours = mine >= handles && mine < handles + 100 && mine->magic == 42;
              wrong += !ours;
              return ours ? mine : nullptr;
            }
            static int start(void* context, void** handle, void* event) {
              wrong += context != &contexts;
              unsigned type = *(unsigned char*)event;
              void* parent;
              memcpy(&parent, (char*)event + 8, sizeof parent);
              if (VERSION == 4 && (type == 2 || type == 4)) own(parent);
              if (VERSION > 4 && (type == 2 || type == 4)) {
                void* group;
                memcpy(&group, (char*)event + (type == 2 ? 104 : 64), sizeof group);
                own(group);
              }
              if (type == 8 || type == 16) wrong += own(parent)->type != (type == 8 ? 2 : 8);
              wrong += type > 16;
              handles[used] = {42, type, true};
              *handle = &handles[used++];
              return 0;
            }
            static int stop(void* handle) { stops++; if (Handle* mine = own(handle)) mine->open = false; return 0; }
            static int state(void* handle, int which, void* arguments) {
              states++;
              own(handle);
              wrong += which != 9 || *(uint64_t*)arguments != 4096;
              return 0;
            }
            static int finalize(void* context) { finalized++; wrong += context != &contexts; return 0; }
            extern "C" {
            struct { const char* name; void *init, *start, *stop, *state, *finalize; } ncclProfiler_v%d = {
                "other", (void*)init, (void*)start, (void*)stop, (void*)state, (void*)finalize};
            void report() {
              int open = 0;
              for (int i = 0; i < used; i++) open += handles[i].open;
              printf("other: %%d communicators, %%d events, %%d stops, %%d states, %%d finalized, %%d open, %%d wrong\\n", contexts,
                  used, stops, states, finalized, open, wrong);
            }
            }
            """;

    @TempDir
    static Path folder;

    private static Path driver;
    private static String plugin;

    @BeforeAll
    static void makeDriver() throws IOException {
        driver = Cxx.program(folder, "driver", DRIVER, "-O1", "-pthread", "-ldl");
        plugin = Loader.load(NativeLibrary.class);
    }

    private static List<String> run(int version, String scenario, String... more) throws IOException {
        List<String> command = new ArrayList<>(List.of(driver.toString(), plugin, Integer.toString(version), scenario));
        command.addAll(List.of(more));
        return Cxx.output(command).lines().toList();
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 5, 6, 7})
    void recordsEventsOfEveryVersion(int version) throws IOException {
        String mask = version < 6 ? "mask 46" : "mask 1046";
        // From v7 on, NCCL must always report kernels.
        String off = version < 7 ? "mask 0" : "mask 40";
        List<String> lines = new ArrayList<>(List.of(
                "nccl4j " + off,
                mask,
                off,
                "communicator 1 1234 driver 8 ranks 3 nodes rank 5 v" + version,
                "operation 1 of 1 type 1 AllReduce ncclFloat32 RING LL128 number 7 count 1024 tag "
                        + (version == 7 ? 99 : 0) + " peer 3 2 16",
                "start 1 channel 0 at 5000",
                "start 1 channel 63 at 5001",
                "stop 1 channel 63 at 6001",
                "stop 1 channel 0 at 6000",
                "operation 2 of 1 type 2 Send ncclInt8   number 0 count 77 tag " + (version == 7 ? 98 : 0)
                        + " peer 6 1 0"));
        if (version > 5) {
            lines.add("operation 3 of 1 type 3 AllGather ncclInt8 COPY_ENGINE UC number 3 count 12 tag "
                    + (version == 7 ? 97 : 0) + " peer 0 0 0");
        }
        lines.addAll(List.of("start 1 channel 2 at 7000", "stop 1 channel 2 at 8000", "end 1"));
        assertEquals(lines, run(version, "records"));
    }

    /** NCCL before 2.32 crashes when it can't allocate the memory with which it reports kernels. */
    @ParameterizedTest
    @ValueSource(ints = {4, 5, 6, 7})
    void noKernelsWithoutTheSharedMemoryForThem(int version) throws IOException {
        assertEquals(
                List.of("mask " + (version < 6 ? "46" : "1046") + ", without 0, untimed 0 of 2"),
                run(version, "enough"));
        assertEquals(
                List.of("mask " + (version < 6 ? "6" : "1006") + ", without 1, untimed 1 of 2"),
                run(version, "little"));
    }

    @Test
    void fullQueueDropsAndCounts() throws IOException {
        // The record of the communicator is the first one.
        assertEquals(List.of("taken 32768 dropped 7233, first 0, last 32766", "then 3 dropped 7233"), run(5, "full"));
    }

    @Test
    void millionOperationsOfFourThreadsNeedNoMoreMemory() throws IOException {
        List<String> lines = run(6, "million");
        System.out.println(lines);
        assertTrue(lines.contains("all counted, grown by less than 1 MiB"), lines::toString);
    }

    @ParameterizedTest
    @CsvSource({"4, 4", "5, 4", "5, 5", "6, 5", "7, 5", "7, 6", "7, 7"})
    void passesEventsToAnotherPlugin(int version, int other) throws IOException {
        Path library = other(other);
        List<String> both = run(version, "both", library.toString());
        assertEquals(
                List.of(
                        version < 6 ? "mask 5f" : "mask 105f",
                        "other: 1 communicators, 5 events, 5 stops, 1 states, 1 finalized, 0 open, 0 wrong",
                        "communicator 1 1234 chained 8 ranks 3 nodes rank 5 v" + version,
                        "operation 1 of 1 type 1 AllReduce ncclFloat32 RING LL128 number 1 count 1024 tag "
                                + (version == 7 ? 99 : 0) + " peer 3 2 16",
                        "start 1 channel 1 at 100",
                        "operation 2 of 1 type 2 Send ncclInt8   number 0 count 77 tag " + (version == 7 ? 98 : 0)
                                + " peer 6 1 0",
                        "stop 1 channel 1 at 200",
                        "end 1"),
                both);
        List<String> alone = run(version, "other", library.toString());
        assertEquals(version < 7 ? "mask 1f" : "mask 5f", alone.get(0));
        assertEquals("other: 1 communicators, 5 events, 5 stops, 1 states, 1 finalized, 0 open, 0 wrong", alone.get(1));
        assertEquals(4, alone.size(), alone::toString);
    }

    @Test
    void reportsAnotherPluginThatCannotBeUsed() throws IOException {
        List<String> missing = run(5, "both", "/nowhere/libother.so");
        assertEquals(
                "nccl4j: can't load the profiler plugin /nowhere/libother.so: No such file or directory",
                missing.get(0));
        Path newer = other(6);
        assertEquals(
                "nccl4j: the profiler plugin " + newer + " has no interface from v4 to v5",
                run(5, "both", newer.toString()).get(0));
    }

    /** This library under another name must not be called by itself. */
    @Test
    void doesNotPassEventsToItself() throws IOException {
        List<String> lines = run(7, "both", plugin);
        assertEquals(
                List.of("mask 1046", "communicator 1 1234 chained 8 ranks 3 nodes rank 5 v7"), lines.subList(1, 3));
    }

    private static Path other(int version) throws IOException {
        return Cxx.library(folder, "other" + version, String.format(Locale.ROOT, OTHER, version, version));
    }
}

package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

/** Parsing of our header, and of constructs that only other headers contain. */
class HeaderTest {
    @Test
    void everyFunctionOfOurHeaderHasAPncclTwin() throws Exception {
        Header header = Header.parse(OurHeader.FILE);
        List<String> names = header.functions().keySet().stream()
                .filter(name -> name.startsWith("nccl"))
                .toList();
        assertEquals(75, names.size(), "73 of NCCL, the all-to-all-v of VCCL, and one of RCCL");
        for (String name : names) {
            Function twin = header.functions().get("p" + name);
            assertEquals(header.functions().get(name).signature(), twin.signature(), name);
            assertTrue(header.since(name).isPresent(), name);
            assertEquals(header.since(name), header.since("p" + name));
        }
        assertEquals(2 * names.size(), header.functions().size());
        assertEquals(Optional.of(new Release(2, 32, 3)), header.release());
    }

    @Test
    void ourHeaderHasConstantsAndStructures() throws Exception {
        Header header = Header.parse(OurHeader.FILE);
        assertEquals("INT_MIN", header.macros().get("NCCL_CONFIG_UNDEF_INT").text());
        assertEquals("NCCL 2.29.7", header.macros().get("NCCL_SUSPEND_MEM").since());
        assertTrue(header.macros().get("NCCL_VERSION").functionLike());
        StructType config = header.structs().get("ncclConfig_t");
        assertEquals(26, config.fields().size());
        assertEquals(
                new Field("const char*", "commName", "", "NCCL 2.27.3"),
                config.fields().get(10));
        assertEquals(
                new Field("char", "internal", "NCCL_UNIQUE_ID_BYTES", ""),
                header.structs().get("ncclUniqueId").fields().get(0));
        Enumerator last = header.enums().get("ncclRedOp_t").enumerators().get(6);
        assertEquals("ncclMaxRedOp", last.name());
        assertEquals(0x7fffffff, last.value().orElseThrow());
        assertEquals("struct ncclComm*", header.aliases().get("ncclComm_t").type());
    }

    @Test
    void fieldsOfNestedStructuresAreFlattened() throws Exception {
        Header header = Header.parse(OurHeader.FILE);
        assertEquals(
                List.of(
                        "struct ncclConfigExt* next",
                        "int key.vendorId",
                        "int key.optionId",
                        "int val.i",
                        "const char* val.s",
                        "void* val.raw"),
                header.structs().get("ncclConfigExt_t").fields().stream()
                        .map(Field::toString)
                        .toList());
    }

    @Test
    void initializersAreFoundWithTheirStructures() throws Exception {
        assertEquals(
                Map.of(
                        "NCCL_CONFIG_INITIALIZER", "ncclConfig_t",
                        "NCCL_COLLCONFIG_INITIALIZER", "ncclCollConfig_t",
                        "NCCL_ENCRYPTION_CONFIG_INITIALIZER", "ncclEncryptionConfig_t",
                        "NCCL_SIM_INFO_INITIALIZER", "ncclSimInfo_t"),
                Header.parse(OurHeader.FILE).initializers());
    }

    @Test
    void enumeratorsMayUseLimitsAndMacros() throws Exception {
        List<Enumerator> modes =
                Header.parse(OurHeader.FILE).enums().get("ncclNvlsHostMode_t").enumerators();
        assertEquals(Integer.MIN_VALUE, modes.get(0).value().orElseThrow());
        assertEquals(Integer.MAX_VALUE, modes.get(4).value().orElseThrow());
    }

    @Test
    void parsesConstructsOfOtherHeaders() {
        Header header = Header.parse("""
                #if CUDART_VERSION >= 11000 && defined(ANYTHING) || 0
                #error not read
                #elif __cplusplus && CUDART_VERSION >= 11080
                #include <cuda_fp8.h>
                #endif
                #ifdef __cplusplus
                extern "C" {
                #endif
                /* the twin
                 * first */
                ncclResult_t pncclRecv(void* recvbuff, size_t count,
                    struct x *stream); // behind
                ncclResult_t  ncclRecv(void *recvbuff, size_t count , struct x* stream);
                __attribute__ ((deprecated("old; (really)")))
                void ncclOld();
                #ifdef NCCL_OS_LINUX
                extern void ncclResetDebugInit(void);
                #else
                #define ncclResetDebugInit()
                #endif
                typedef enum { a = 1, b, /* 2.27.3: word */
                #if defined(__CUDA_BF16_TYPES_EXIST__)
                  c = (b << 2) | 1, d = sizeof(int) * 2 - 1
                #endif
                } e_t;
                static inline int ncclBody(int x) { if (x) { return 1; } return 2; }
                const char* const* ncclUnnamed(int, const unsigned, unsigned long long v, int list[2]);
                #ifdef __cplusplus
                } // end
                #endif
                """);
        assertEquals(
                List.of("pncclRecv", "ncclRecv", "ncclOld", "ncclResetDebugInit", "ncclBody", "ncclUnnamed"),
                List.copyOf(header.functions().keySet()));
        assertEquals(
                header.functions().get("pncclRecv").signature(),
                header.functions().get("ncclRecv").signature());
        assertEquals(
                "const char* const* (int, const unsigned, unsigned long long, int*)",
                header.functions().get("ncclUnnamed").signature());
        assertFalse(header.macros().containsKey("ncclResetDebugInit"));
        List<Enumerator> enumerators = header.enums().get("e_t").enumerators();
        assertEquals(
                List.of(1L, 2L, 9L, 7L),
                enumerators.stream().map(e -> e.value().orElseThrow()).toList());
        assertEquals("NCCL 2.27.3", enumerators.get(1).since());
    }

    @Test
    void rejectsUnclosedCondition() {
        var failure = assertThrows(IllegalArgumentException.class, () -> Header.parse("#if 1\nint a(int b);\n"));
        assertEquals("1 #if without #endif", failure.getMessage());
    }
}

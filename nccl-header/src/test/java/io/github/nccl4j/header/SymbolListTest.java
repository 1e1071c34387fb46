package io.github.nccl4j.header;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The generated files of the native code. */
class SymbolListTest {
    private static final String SMALL = "int ncclSend(int a);\nint pncclSend(int a);\nint ncclFuture(void);\n";

    @Test
    void functionsHaveTheirRelease() throws Exception {
        SymbolList list = new SymbolList(Header.parse(SMALL), Header.parse(OurHeader.FILE));
        assertEquals("""
                NCCL4J_FUNCTION(ncclSend, "NCCL 2.7.3")
                NCCL4J_FUNCTION(pncclSend, "NCCL 2.7.3")
                NCCL4J_FUNCTION(ncclFuture, "an unknown release")
                NCCL4J_FUNCTION(ncclAlltoAllv, "VCCL a2av_base or RCCL 2.28")
                NCCL4J_FUNCTION(pncclAlltoAllv, "VCCL a2av_base or RCCL 2.28")
                """, list.functions());
    }

    @Test
    void redirectionsOmitOverloadedFunctions() throws Exception {
        Header ours = Header.parse(OurHeader.FILE);
        String text = new SymbolList(ours, ours).redirections();
        assertTrue(text.contains("#undef ncclSend\n#define ncclSend (NCCL4J_SYMBOL(ncclSend))\n"));
        assertFalse(text.contains("AlltoAllv"));
        assertTrue(text.contains("#define ncclCollConfig_t nccl4j::Initialized_ncclCollConfig_t\n"));
        assertEquals(2 * 2 * 74 + 6, text.lines().count());
    }

    @Test
    void functionsOfTheDeviceApiComeLast() throws Exception {
        Header ours = Header.parse(OurHeader.FILE);
        Header device = Header.parse(OurHeader.DEVICE);
        SymbolList list = new SymbolList(ours, ours, device);
        assertEquals(23, device.functions().size());
        assertEquals(ours.functions().size() + 23, list.names().size());
        assertTrue(list.functions().endsWith("NCCL4J_FUNCTION(ncclLLA2ACreateRequirement, \"NCCL 2.28.3\")\n"));
        assertTrue(list.functions().contains("NCCL4J_FUNCTION(ncclTeamCft, \"NCCL 2.31.2\")\n"));
        assertTrue(list.redirections().contains("#define ncclTeam_t nccl4j::Initialized_ncclTeam_t\n"));
        assertTrue(list.structs().contains("NCCL4J_STRUCT(ncclTeam_t, {})\n"));
        assertTrue(list.structs().contains("NCCL4J_STRUCT(ncclCommProperties_t, NCCL_COMM_PROPERTIES_INITIALIZER)\n"));
    }

    @Test
    void structuresWithoutInitializerAreZeroed() {
        Header header = Header.parse("""
                typedef struct { int a; } ncclOne_t;
                typedef struct { size_t size; int a; } ncclTwo_t;
                #define NCCL_TWO_INITIALIZER { sizeof(ncclTwo_t), 1 }
                typedef struct { char internal[128]; } ncclUniqueId;
                """);
        assertEquals(
                "NCCL4J_STRUCT(ncclOne_t, {})\nNCCL4J_STRUCT(ncclTwo_t, NCCL_TWO_INITIALIZER)\n",
                new SymbolList(header, header).structs());
    }

    private static void write(Path folder, String device) throws Exception {
        SymbolList.main(
                "--header",
                OurHeader.FILE.toString(),
                "--reference",
                OurHeader.FILE.toString(),
                "--device",
                device,
                "--output",
                folder.toString());
    }

    private static void written(Path folder, SymbolList list, String headers, JavaForms forms, JavaForms deviceForms)
            throws Exception {
        assertEquals(headers, Files.readString(folder.resolve("nccl_headers.inc")));
        assertEquals(list.functions(), Files.readString(folder.resolve("nccl_functions.inc")));
        assertEquals(list.structs(), Files.readString(folder.resolve("nccl_structs.inc")));
        assertEquals(list.redirections(), Files.readString(folder.resolve("nccl_redirect.inc")));
        assertEquals(forms.rules(), Files.readString(folder.resolve("nccl_rules.txt")));
        assertEquals(deviceForms.rules(), Files.readString(folder.resolve("nccl_device_rules.txt")));
    }

    @Test
    void everyFileIsWritten(@TempDir Path folder) throws Exception {
        Header ours = Header.parse(OurHeader.FILE);
        Header device = Header.parse(OurHeader.DEVICE);
        JavaForms forms = new JavaForms(ours);
        write(folder.resolve("both"), OurHeader.DEVICE.toString());
        written(
                folder.resolve("both"),
                new SymbolList(ours, ours, device),
                "#include <nccl.h>\n#include <nccl_device.h>\n",
                forms,
                new JavaForms(device, device.including(ours)));
        write(folder.resolve("one"), "none");
        Header none = Header.parse("");
        written(
                folder.resolve("one"),
                new SymbolList(ours, ours),
                "#include <nccl.h>\n",
                forms,
                new JavaForms(none, none.including(ours)));
    }

    @Test
    void unchangedFilesKeepTheirModificationTime(@TempDir Path folder) throws Exception {
        write(folder, OurHeader.DEVICE.toString());
        Path file = folder.resolve("nccl_functions.inc");
        FileTime old = FileTime.fromMillis(1_000_000);
        Files.setLastModifiedTime(file, old);
        write(folder, OurHeader.DEVICE.toString());
        assertEquals(old, Files.getLastModifiedTime(file));
    }
}

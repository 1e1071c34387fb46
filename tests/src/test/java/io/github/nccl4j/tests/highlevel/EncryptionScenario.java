package io.github.nccl4j.tests.highlevel;

import io.github.nccl4j.global.nccl;
import io.github.nccl4j.highlevel.NcclEncryption;
import io.github.nccl4j.highlevel.NcclLibrary;
import io.github.nccl4j.highlevel.UniqueId;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Arrays;

/** Sets keys: each word of the command line is one thing to do, and prints a line. */
final class EncryptionScenario {
    private EncryptionScenario() {}

    public static void main(String... args) throws IOException {
        for (String word : args) {
            System.out.println(word + ": " + outcome(word));
        }
    }

    private static String outcome(String word) throws IOException {
        String key = "k".repeat(64);
        try {
            return switch (word) {
                case "support" -> NcclEncryption.support().toString();
                case "loaded" -> "" + NcclLibrary.isLoaded();
                case "enabled" -> "" + NcclEncryption.isEnabled();
                case "unique-id" -> UniqueId.create().toBytes().length + " bytes";
                case "version" -> "" + nccl.ncclGetVersion(new int[1]);
                case "log" -> "" + nccl.ncclGroupStart();
                case "file" -> fromFile(key + "\r\n");
                case "short-file" -> fromFile("k".repeat(31) + "\n\n");
                case "no-file" -> fromFile(null);
                case "short" -> fromBytes("k".repeat(31));
                case "zero" -> fromBytes("k".repeat(40) + "\0" + "k".repeat(9));
                case "shortest" -> fromBytes("k".repeat(32));
                case "any" -> fromBytes("\u00ff\n %s".repeat(8));
                case "key" -> fromBytes(key);
                default -> throw new AssertionError(word);
            };
        } catch (RuntimeException e) {
            return e.getClass().getSimpleName() + " " + e.getMessage();
        }
    }

    private static String fromBytes(String text) {
        byte[] key = text.getBytes(StandardCharsets.ISO_8859_1);
        try {
            NcclEncryption.enable(key);
            return "done";
        } finally {
            if (!Arrays.equals(key, new byte[key.length])) {
                throw new AssertionError("the array still has the key");
            }
        }
    }

    private static String fromFile(String text) throws IOException {
        Path file = Files.createTempDirectory("key").resolve("nccl.key");
        try {
            if (text != null) {
                Files.writeString(file, text);
                Files.setPosixFilePermissions(file, PosixFilePermissions.fromString("rw-------"));
            }
            NcclEncryption.enable(file);
            return Files.readString(file).equals(text) ? "done" : "the file has changed";
        } catch (IllegalArgumentException e) {
            return e.getMessage().replace(file.toString(), "FILE");
        } catch (IOException e) {
            return e.getClass().getSimpleName();
        } finally {
            Files.deleteIfExists(file);
            Files.delete(file.getParent());
        }
    }
}

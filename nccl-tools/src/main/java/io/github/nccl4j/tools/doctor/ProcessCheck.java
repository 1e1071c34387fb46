package io.github.nccl4j.tools.doctor;

import io.github.nccl4j.tools.support.LibraryCopies;
import java.util.List;
import java.util.Optional;

/** Reports the copies of NCCL that a running process has loaded. */
final class ProcessCheck implements Check {
    private final Machine machine;
    private final long pid;

    ProcessCheck(Machine machine, long pid) {
        this.machine = machine;
        this.pid = pid;
    }

    @Override
    public String name() {
        return "process " + pid;
    }

    @Override
    public List<Finding> run() {
        Optional<String> maps = machine.read("/proc/" + pid + "/maps");
        if (maps.isEmpty()) {
            return List.of(Finding.problem(
                    "process.unreadable",
                    "/proc/" + pid + "/maps can't be read",
                    "The process does not exist or belongs to another user.",
                    "Run this command as the user of the process"));
        }
        List<String> copies = LibraryCopies.of(maps.get().lines());
        return List.of(
                switch (copies.size()) {
                    case 0 -> Finding.ok("process.none", "the process has not loaded NCCL");
                    case 1 -> Finding.ok("process.one", "the process has loaded " + copies.get(0));
                    default -> LibraryCheck.severalCopies("the process", copies);
                });
    }
}

package io.github.nccl4j.samples.doctor;

import java.util.List;
import java.util.Optional;

/** Which copies of NCCL a running process has. */
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
                    "There is no such process, or it is another user's.",
                    "Run this as the user of the process"));
        }
        List<String> copies = LibraryCopies.of(maps.get().lines());
        return List.of(
                switch (copies.size()) {
                    case 0 -> Finding.ok("process.none", "has loaded no NCCL");
                    case 1 -> Finding.ok("process.one", "has loaded " + copies.get(0));
                    default -> LibraryCheck.twoCopies("the process", copies);
                });
    }
}

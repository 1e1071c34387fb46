/**
 * The native library of the process: its choice, its version, and the functions that it has.
 *
 * <ul>
 *   <li>{@link io.github.nccl4j.library.NativeLibrary}: the loaded library, and the places that were searched. Programs
 *       that use the highlevel package use {@code io.github.nccl4j.highlevel.NcclLibrary} instead.
 *   <li>{@link io.github.nccl4j.library.Engine}: the kind of library to search for.
 *   <li>{@link io.github.nccl4j.library.HostEngine}: streams, events and copies of the host engine, for programs that call the C
 *       functions.
 * </ul>
 *
 * <p>The library is loaded at the first call of a function, and stays for the life of the process.
 */
@NullMarked
package io.github.nccl4j.library;

import org.jspecify.annotations.NullMarked;

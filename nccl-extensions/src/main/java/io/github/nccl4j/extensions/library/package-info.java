/**
 * The libraries of NCCL's extensions: where they are, and whether they are there. {@link
 * io.github.nccl4j.extensions.library.ExtensionLibrary} is for programs; the other classes are for the generated bindings.
 */
@NullMarked
package io.github.nccl4j.extensions.library;

import org.jspecify.annotations.NullMarked;

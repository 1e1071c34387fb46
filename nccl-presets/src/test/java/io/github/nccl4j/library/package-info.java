/** Tests of what the library package keeps to itself. */
package io.github.nccl4j.library;

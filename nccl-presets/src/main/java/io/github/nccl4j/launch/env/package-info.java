/** The launcher of a process: its variables, and the rank that they state. Uses no other package of launch. */
package io.github.nccl4j.launch.env;

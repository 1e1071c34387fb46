/** Tests of what the launch package shows to nobody. */
package io.github.nccl4j.launch;

/** Tests of package-private classes of the launch package. */
package io.github.nccl4j.launch;

/* Loaded before MKL, so that MKL uses all instructions of the processor, as on Intel's. */
int mkl_serv_intel_cpu_true(void) { return 1; }

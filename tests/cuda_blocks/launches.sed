# Makes C++ of CUDA's launches, line by line: kernel<<<blocks, threads, shared, stream>>>(arguments) becomes a call of
# on_host::Grid (on_host.h). The clock of the GPU, which is in its own assembler, becomes that of the host.
s/([A-Za-z_0-9:]+(<[A-Za-z_0-9]+>)?)<<</TANDEM_KERNEL(\1)->*tandem::on_host::Grid{/
s/>>>\(/}(/
s/asm volatile\("mov\.u64 %0, %globaltimer;" : "=l"\(time\)\);/time = tandem::on_host::nanoseconds();/

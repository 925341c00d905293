/* Writes hls/Makefile: builds the design for the CPU with g++, and for the card with v++. */
#include "emit/emit.h"
#include "platform/platform.h"

static const char *const rules =
        "CXXFLAGS = -O2 -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off\n"
        "\n"
        ".PHONY: csim host xclbin hw_emu clean\n"
        "\n"
        "# The design on the CPU.  Its channels are bounded and its processes run side by side, so "
        "that a ring of processes works and a deadlock is reported.\n"
        "# The vendor's C simulation runs processes sequentially and deadlocks on layer feedback: "
        "do not use it here.\n"
        "csim: $(TOP).so\n"
        "\n"
        "$(TOP).so: $(TOP).cpp st_math.h st_functions.h st_integer.h st_narrow.h st_double.h "
        "$(wildcard "
        "csim/*.h)\n"
        "\tg++ $(CXXFLAGS) -shared -fPIC -I. -Icsim -o $@ $(TOP).cpp\n"
        "\n"
        "# The host program; STREAMTENSOR is where streamtensor is installed (include/, lib/).\n"
        "host: ../host/host\n"
        "\n"
        "../host/host: ../host/main.c\n"
        "\tcc -O2 -std=c17 -I$(STREAMTENSOR)/include -o $@ $< -L$(STREAMTENSOR)/lib "
        "-Wl,-rpath,$(STREAMTENSOR)/lib -lstreamtensor\n"
        "\n"
        "xclbin: $(TOP).hw.xclbin\n"
        "hw_emu: $(TOP).hw_emu.xclbin\n"
        "\temconfigutil --platform $(PLATFORM) --od .\n"
        "\n"
        "$(TOP).%.xo: $(TOP).cpp st_math.h st_functions.h st_integer.h st_narrow.h st_double.h\n"
        "\tv++ -c -t $* --platform $(PLATFORM) -k $(TOP) --hls.clock $(FREQUENCY)000000:$(TOP) "
        "--save-temps -g -I. -o $@ $(TOP).cpp\n"
        "\n"
        "$(TOP).%.xclbin: $(TOP).%.xo link.cfg\n"
        "\tv++ -l -t $* --platform $(PLATFORM) --kernel_frequency $(FREQUENCY) --config link.cfg "
        "--optimize 3 --save-temps -o $@ $<\n"
        "\n"
        "clean:\n"
        "\trm -rf $(TOP).so *.xo *.xclbin *.xclbin.* *.log *.ltx _x .Xil .ipcache ../host/host\n"
        "\n"
        ".SECONDARY:\n";

void emit_makefile(const struct platform *platform, const char *top, struct text *out)
{
	text_add(out,
	        "# make csim: the design as a library for the CPU; make xclbin: for the card; make "
	        "host: the host program.\n");
	text_add(out, "TOP = %s\nPLATFORM ?= %s\nFREQUENCY ?= %.0f\nSTREAMTENSOR ?= /usr/local\n",
	        top, platform->xpfm ? platform->xpfm : "", platform->clock_mhz);
	text_add(out, "%s", rules);
}

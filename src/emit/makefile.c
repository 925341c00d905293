/* Writes hls/Makefile: builds the design for the CPU with g++, and for the card with v++. */
#include "emit/emit.h"
#include "platform/platform.h"

static const char *const rules =
        "CXXFLAGS = -O2 -std=c++17 -Wall -Wextra -Wno-unknown-pragmas -ffp-contract=off\n"
        "\n"
        ".PHONY: csim csynth host xclbin hw_emu tools clean\n"
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
        "# Synthesis of C++ alone, in hours: of the whole design, or in minutes of one process "
        "(PROCESS=NAME).  Then the reports are compared with what the design promises.\n"
        "csynth: tools\n"
        "\tpython3 csynth.py prepare $(TOP).cpp $(PART) $(FREQUENCY) $(PROCESS)\n"
        "\tcd csynth && $(HLS) $(or $(PROCESS),$(TOP)).tcl\n"
        "\tpython3 csynth.py compare $(TOP).cpp csynth/$(or $(PROCESS),$(TOP))\n"
        "\n"
        "# Is the vendor's compiler new enough for this design?\n"
        "tools:\n"
        "\tv++ --version | python3 csynth.py version $(TOP).cpp\n"
        "\n"
        "xclbin: tools $(TOP).hw.xclbin\n"
        "hw_emu: tools $(TOP).hw_emu.xclbin\n"
        "\temconfigutil --platform $(PLATFORM) --od .\n"
        "\n"
        "$(TOP).%.xo: $(TOP).cpp st_math.h st_functions.h st_integer.h st_narrow.h st_double.h\n"
        "\tv++ -c -t $* --platform $(PLATFORM) -k $(TOP) --hls.clock $(FREQUENCY)000000:$(TOP) "
        "--hls.pre_tcl strict.tcl --save-temps -g -I. -o $@ $(TOP).cpp\n"
        "\t$(if $(DIES),python3 crossings.py $@ $(DIES) st_crossing.v)\n"
        "\n"
        "$(TOP).%.xclbin: $(TOP).%.xo link.cfg\n"
        "\tv++ -l -t $* --platform $(PLATFORM) --kernel_frequency $(FREQUENCY) --config link.cfg "
        "--optimize 3 --save-temps $(if $(filter hw,$*),$(PLACE)) -o $@ $<\n"
        "\n"
        "clean:\n"
        "\trm -rf csynth $(TOP).so *.xo *.xclbin *.xclbin.* *.log *.ltx _x .Xil .ipcache "
        "../host/host\n"
        "\n"
        ".SECONDARY:\n";

void emit_makefile(const struct platform *platform, const char *top, struct text *out)
{
	text_add(out,
	        "# make csim: the design as a library for the CPU; make csynth: does the vendor's "
	        "compiler keep what the report promises; make hw_emu: for the vendor's "
	        "simulator; make xclbin: for the card; make host: the host program.\n");
	text_add(out,
	        "TOP = %s\nPART = %s\nPLATFORM ?= %s\nFREQUENCY ?= %.0f\nSTREAMTENSOR ?= "
	        "/usr/local\n",
	        top, platform->part, platform->xpfm ? platform->xpfm : "", platform->clock_mhz);
	text_add(out,
	        "HLS ?= $(if $(shell command -v vitis_hls),vitis_hls -f,vitis-run --mode hls "
	        "--tcl)\n");
	text_add(out,
	        "# the dies of processes and channels, where there are several; without them "
	        "(DIES=) "
	        "no registers between dies either\n"
	        "DIES ?= $(wildcard floorplan.tcl)\n"
	        "PLACE = $(patsubst %%,--vivado.prop "
	        "run.impl_1.STEPS.PLACE_DESIGN.TCL.PRE=$(CURDIR)/%%,$(DIES))\n");
	text_add(out, "%s", rules);
}

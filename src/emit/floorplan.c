/* Writes floorplan.tcl: the die of every process, of every channel and of the registers of those
 * that cross between dies, as Vivado's constraints.  A channel is with its reader, as the resource
 * model counts it.  Registers of control wires, which are known in the vendor's netlist only, are
 * found by the end of their names. */
#include "emit/emit.h"

static const char *const head =
        "# The die of every process, of every channel of the kernel, and of the registers that "
        "crossings.py puts in front of the channels between dies; the Makefile has Vivado read it "
        "before placement.\n"
        "# In the vendor's netlist a process is NAME_U0 and a channel NAME_U; NAME_cross_0 is with "
        "the writer of a channel, and each further one a die nearer to its reader. Registers of "
        "starts and of idle end in the number of their die.\n"
        "proc place {die names} {\n"
        "\tset found 0\n"
        "\tset missing {}\n"
        "\tforeach name $names {\n"
        "\t\tset cells [get_cells -quiet -hierarchical -filter \"NAME =~ */%s_1/inst/$name || NAME "
        "=~ */%s_1/inst/*/$name\"]\n"
        "\t\tif {[llength $cells]} {\n"
        "\t\t\tadd_cells_to_pblock [get_pblocks pblock_dynamic_SLR$die] $cells -clear_locs\n"
        "\t\t\tincr found\n"
        "\t\t} elseif {[string first * $name] < 0} {\n"
        "\t\t\tlappend missing $name\n"
        "\t\t}\n"
        "\t}\n"
        "\tputs \"floorplan: die $die has $found of [llength $names] cells\"\n"
        "\tif {[llength $missing]} {\n"
        "\t\tputs \"WARNING: floorplan: die $die: not in the netlist: $missing\"\n"
        "\t}\n"
        "}\n";

void emit_floorplan(
        const struct placed_cells *placement, int dies, const char *top, struct text *out)
{
	text_add(out, head, top, top);
	for (int64_t die = 0; die < dies; die++) {
		text_add(out, "place %lld {\n", (long long)die);
		for (size_t i = 0; i < placement->cells.count; i++)
			if (placement->cells.data[i].die == die)
				text_add(out, "\t%s\n", placement->cells.data[i].name);
		text_add(out, "\t*_on_die_%lld\n}\n", (long long)die);
	}
}

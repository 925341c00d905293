// Registers of a channel whose writer and reader are on different dies; crossings.py puts them in
// front of the channel's FIFO:
//
//   writer -> st_crossing_exit | st_crossing_between | st_crossing_entry -> FIFO -> reader
//
// A bar is a boundary of two dies.  Every wire over it begins and ends in a register, with nothing
// between.  st_crossing_between is on each die that a word only passes.  The queue takes all words
// that are on their way when the writer learns that there is no more room.

// On the die of the writer, which writes while if_full_n is high, as to a FIFO.
(* keep_hierarchy = "yes" *)
module st_crossing_exit #(
    parameter WIDTH = 32
) (
    input wire clk,
    input wire reset,
    input wire if_write,
    input wire [WIDTH-1:0] if_din,
    output reg if_full_n,
    (* shreg_extract = "no" *) output reg write,
    (* shreg_extract = "no" *) output reg [WIDTH-1:0] word,
    input wire room
);
    always @(posedge clk) begin
        word <= if_din;
        if (reset) begin
            write <= 1'b0;
            if_full_n <= 1'b0;
        end else begin
            write <= if_write & if_full_n;
            if_full_n <= room;
        end
    end
endmodule

(* keep_hierarchy = "yes" *)
module st_crossing_between #(
    parameter WIDTH = 32
) (
    input wire clk,
    input wire reset,
    input wire write_in,
    input wire [WIDTH-1:0] word_in,
    (* shreg_extract = "no" *) output reg room_in,
    (* shreg_extract = "no" *) output reg write,
    (* shreg_extract = "no" *) output reg [WIDTH-1:0] word,
    input wire room
);
    (* shreg_extract = "no" *) reg passes_write;
    (* shreg_extract = "no" *) reg [WIDTH-1:0] passes_word;
    (* shreg_extract = "no" *) reg passes_room;

    always @(posedge clk) begin
        passes_word <= word_in;
        word <= passes_word;
        if (reset) begin
            passes_write <= 1'b0;
            write <= 1'b0;
            passes_room <= 1'b0;
            room_in <= 1'b0;
        end else begin
            passes_write <= write_in;
            write <= passes_write;
            passes_room <= room;
            room_in <= passes_room;
        end
    end
endmodule

// On the die of the reader.  CROSSINGS: boundaries of the whole channel.
(* keep_hierarchy = "yes" *)
module st_crossing_entry #(
    parameter WIDTH = 32,
    parameter CROSSINGS = 1
) (
    input wire clk,
    input wire reset,
    input wire write_in,
    input wire [WIDTH-1:0] word_in,
    (* shreg_extract = "no" *) output reg room,
    output wire if_write,
    output wire [WIDTH-1:0] if_din,
    input wire if_full_n
);
    localparam WORDS = CROSSINGS > 1 ? 32 : 16;
    // words that may still come: as many as cycles from the queue's count to the writer and back
    localparam [5:0] ROOM = WORDS - 4 * CROSSINGS;

    (* shreg_extract = "no" *) reg entry_write;
    (* shreg_extract = "no" *) reg [WIDTH-1:0] entry_word;
    reg [WIDTH-1:0] queue[0:WORDS-1];
    reg [5:0] count;
    wire leaves = if_write & if_full_n;
    wire [5:0] oldest = count - 6'd1;
    integer i;

    assign if_write = count != 6'd0;
    assign if_din = queue[oldest[4:0]];

    always @(posedge clk) begin
        entry_word <= word_in;
        if (entry_write) begin
            for (i = 1; i < WORDS; i = i + 1)
                queue[i] <= queue[i-1];
            queue[0] <= entry_word;
        end
        if (reset) begin
            entry_write <= 1'b0;
            room <= 1'b0;
            count <= 6'd0;
        end else begin
            entry_write <= write_in;
            room <= count < ROOM;
            count <= count + {5'd0, entry_write} - {5'd0, leaves};
        end
    end
endmodule

// A level on its way to another die: whether the processes of a die are idle.
(* keep_hierarchy = "yes" *)
module st_crossing_level (
    input wire clk,
    input wire level_in,
    (* shreg_extract = "no" *) output reg level
);
    always @(posedge clk)
        level <= level_in;
endmodule

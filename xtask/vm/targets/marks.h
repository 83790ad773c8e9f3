// What every target does: two runs, in them three functions.
static void sections(void (*begin)(const char *), void (*end)(void))
{
	static const char *const runs[2][2] = {
		{ "B|1|[NN_LC_PCO]first", "B|1|[NN_LC_PCO]third" },
		{ "B|1|[NN_LC_PCO]second", "B|1|[NN_LC_PCO]third" },
	};
	for (int run = 0; run < 2; run++) {
		begin("B|1|[NN_LR_PE]run");
		for (int call = 0; call < 2; call++) {
			begin(runs[run][call]);
			end();
		}
		end();
	}
}

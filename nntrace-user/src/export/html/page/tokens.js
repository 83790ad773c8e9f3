// Prompts and tokens of language models.

/** A line for each kind of work of each process. */
function languageModelsPart() {
  const models = snapshot.language_models ?? [];
  if (models.length === 0) return null;
  const key = 'language_models';
  const rows = models.flatMap((/** @type {any} */ { pid, prompt_batches: batches, prompt_tokens: tokens, prompt_ns: total, decode, first_token: first, between_tokens: between }) => [
    { pid, what: 'Prompts, in batches', count: batches, tokens, total_ns: total },
    { pid, what: 'Decoding', tokens: decode.count, ...decode },
    { pid, what: 'Time to first token', ...first, total_ns: null },
    { pid, what: 'Between tokens', ...between, total_ns: null },
  ]);
  const rate = (/** @type {any} */ row) => (row.tokens > 0 && row.total_ns > 0 ? (row.tokens * 1e9) / row.total_ns : null);
  /** @type {Column[]} */
  const columns = [
    words('Process', (row) => processName(row.pid)),
    words('Work', (row) => row.what),
    counts('Count', (row) => row.count, key),
    counts('Tokens', (row) => row.tokens, key),
    times('Total', (row) => row.total_ns, key),
    { title: 'Tokens/s', key: rate, figure: key, cell: (row) => perSecond(rate(row)) },
    times('p50', (row) => row.p50_ns, key),
    times('p95', (row) => row.p95_ns, key),
    times('p99', (row) => row.p99_ns, key),
    times('max', (row) => row.max_ns, key),
  ];
  const about = 'Batches of several tokens are prompts, those of one are steps of decoding. The time to the first token is that of the prompt of a request; between tokens is from the end of a batch to the end of the next step.';
  return part('tokens', 'Language models', about, table({ caption: 'Prompts and tokens by process', columns, rows, group: (row) => String(row.pid) }));
}

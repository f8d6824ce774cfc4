/** A text from others: control characters become question marks. */
export const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}]/gu, '?')

/** Rows of words in columns. Control characters become question marks. */
export function table(rows: readonly (readonly string[])[]): string {
  const shown = rows.map((row) => row.map(printable))
  const widths = (shown[0] ?? []).map((_, column) => Math.max(...shown.map((row) => (row[column] ?? '').length)))
  return shown
    .map((row) =>
      row
        .map((word, column) => word.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

/** A time in milliseconds to the minute, in UTC; a dash for none. */
export function minute(ms: number | null): string {
  return ms === null ? '-' : new Date(ms).toISOString().slice(0, 16).replace('T', ' ')
}

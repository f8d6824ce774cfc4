/** A column of the rows for a statement: its name there, its type, and how to read it from a row. */
export type Column<Row> = readonly [
  name: string,
  type: 'bigint' | 'int' | 'text' | 'boolean',
  read: (row: Row) => unknown,
]

/** Binds rows as parameters, and their JSON as slices of one binary parameter, which needs no escaping. */
export class Parameters {
  readonly values: unknown[] = [undefined]
  readonly #bytes: Buffer[] = []
  #length = 0

  /** Rows as a table of a FROM clause: a single row as values, which costs the planner nothing, several rows as arrays. */
  table<Row>(rows: readonly Row[], alias: string, columns: readonly Column<Row>[]): string {
    const names = columns.map(([name]) => name).join(', ')
    const [only] = rows
    if (only !== undefined && rows.length === 1) {
      const values = columns.map(([, type, read]) => `${this.value(read(only))}::${type}`)
      return `(VALUES (${values.join(', ')})) AS ${alias} (${names})`
    }
    const arrays = columns.map(([, type, read]) => `${this.value(arrayText(rows, type, read))}::${type}[]`)
    return `unnest(${arrays.join(', ')}) AS ${alias} (${names})`
  }

  /** Whether a table has used `$1` so far. The statement must name `$1` in any case, or Postgres does not know its type. */
  get holdsJson(): boolean {
    return this.#bytes.length > 0
  }

  /** Binds a value. Returns the parameter's name. */
  value(value: unknown): string {
    this.values.push(value)
    return `$${this.values.length}`
  }

  /** Columns for where each row's JSON lies in the binary parameter, `$1`: its first byte, counted from 1, and how many. */
  jsonOf<Row extends { readonly json: string }>(
    rows: readonly Row[],
  ): readonly [start: Column<Row>, size: Column<Row>] {
    const places = new Map<Row, { start: number; size: number }>()
    for (const row of rows) {
      const bytes = Buffer.from(row.json)
      places.set(row, { start: this.#length + 1, size: bytes.length })
      this.#bytes.push(bytes)
      this.#length += bytes.length
    }
    return [
      ['start', 'int', (row) => places.get(row)!.start],
      ['size', 'int', (row) => places.get(row)!.size],
    ]
  }

  /** All values, once every table is bound. */
  complete(): unknown[] {
    this.values[0] = this.#bytes.length === 1 ? this.#bytes[0] : Buffer.concat(this.#bytes, this.#length)
    return this.values
  }
}

/** The text form of a Postgres array. The driver writes arrays value by value, which takes several times as long for thousands of rows. */
function arrayText<Row>(rows: readonly Row[], type: Column<Row>[1], read: Column<Row>[2]): string {
  const isText = type === 'text'
  let text = '{'
  for (const row of rows) {
    const value = read(row)
    const item = value === null || value === undefined ? 'NULL' : isText ? quoted(`${value}`) : `${value}`
    text += text === '{' ? item : `,${item}`
  }
  return `${text}}`
}

function quoted(value: string): string {
  return /["\\]/.test(value) ? `"${value.replace(/["\\]/g, '\\$&')}"` : `"${value}"`
}

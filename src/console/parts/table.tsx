import type { ComponentChildren } from 'preact'
import { count } from '../format.ts'
import { t } from '../words.ts'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** The name by which the server orders, if it can. */
  readonly order?: string
  readonly isNumber?: boolean
  /** The column that names the row. */
  readonly isHeading?: boolean
}

export interface Ordering {
  readonly by: string
  readonly isDescending: boolean
  set(by: string, isDescending: boolean): void
}

interface Props<Row> {
  readonly label: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly keyOf: (row: Row) => string | number
  readonly empty: string
  readonly ordering?: Ordering
}

/** Rows of data; on a phone each becomes a card. */
export function Table<Row>({ label, columns, rows, keyOf, empty, ordering }: Props<Row>) {
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    <section class="scroll" aria-label={label}>
      <table>
        <caption class="hidden">{label}</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <Heading key={column.title} column={column} ordering={ordering} />
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ title, cell, isNumber, isHeading }) =>
                isHeading ? (
                  <th key={title} scope="row">
                    {cell(row)}
                  </th>
                ) : (
                  <td key={title} data-title={title} class={isNumber ? 'number' : undefined}>
                    {cell(row)}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  )
}

function Heading<Row>({ column, ordering }: { readonly column: Column<Row>; readonly ordering: Ordering | undefined }) {
  const { title, order, isNumber } = column
  if (ordering === undefined || order === undefined) {
    return (
      <th scope="col" class={isNumber ? 'number' : undefined}>
        {title}
      </th>
    )
  }
  const isOrdered = ordering.by === order
  const direction = ordering.isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" class={isNumber ? 'number' : undefined} aria-sort={isOrdered ? direction : undefined}>
      <button
        type="button"
        class="order"
        onClick={() => ordering.set(order, isOrdered ? !ordering.isDescending : isNumber === true)}
      >
        {title}
        <span aria-hidden="true">{isOrdered ? (ordering.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}

/** Steps through the pages of a list that the server cuts. */
export function Pager({
  from,
  shown,
  total,
  size,
  turn,
}: {
  readonly from: number
  readonly shown: number
  readonly total: number
  readonly size: number
  readonly turn: (from: number) => void
}) {
  if (total === 0) return null
  return (
    <nav class="pager" aria-label={t('Pages of the list')}>
      <button type="button" class="quiet small" disabled={from === 0} onClick={() => turn(Math.max(0, from - size))}>
        {t('Previous')}
      </button>
      <span class="soft" role="status">
        {t('{from} to {to} of {total}', { from: count(from + 1), to: count(from + shown), total: count(total) })}
      </span>
      <button type="button" class="quiet small" disabled={from + shown >= total} onClick={() => turn(from + size)}>
        {t('Next')}
      </button>
    </nav>
  )
}

import type { Reader } from '../db/db.ts'
import type { BindingRow } from './bindings.ts'

// Table: identity_binding

/** A page of the bindings whose address or user contains a text. It reads all of them: use a connection for long queries. */
export async function pageBindings(
  reader: Reader,
  { search, from, limit }: { readonly search: string | undefined; readonly from: number; readonly limit: number },
): Promise<{ readonly bindings: BindingRow[]; readonly total: number }> {
  const wanted =
    '$1::text IS NULL OR position(lower($1) IN lower(address)) > 0 OR position(lower($1) IN lower(user_id)) > 0'
  const [bindings, [counted]] = await Promise.all([
    reader.query<BindingRow>(
      `SELECT medium, address, user_id, bound_at FROM identity_binding WHERE ${wanted}
       ORDER BY medium, address LIMIT $2 OFFSET $3`,
      [search ?? null, limit, from],
    ),
    reader.query<{ total: number }>(`SELECT count(*) AS total FROM identity_binding WHERE ${wanted}`, [search ?? null]),
  ])
  return { bindings, total: counted?.total ?? 0 }
}

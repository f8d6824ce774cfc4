import { open, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import pg from 'pg'

/** A part of a file of a cluster, or an empty directory. */
export interface ClusterPiece {
  readonly path: string
  readonly at: number
  readonly bytes: Buffer
  readonly isDirectory: boolean
}

/** A copy of a running cluster, file by file; whole together with the log from its first segment to its last. */
export interface BaseCopy {
  readonly systemIdentifier: string
  readonly postgres: number
  readonly firstWal: string
  /** All files. Read to its end before `finish`. @param take called for so many bytes before the next are read */
  pieces(take: Take): AsyncGenerator<ClusterPiece>
  /** What must lie in the copy, and the last segment that it needs. */
  finish(): Promise<{ readonly label: string; readonly lastWal: string }>
  close(): Promise<void>
}

type Take = (bytes: number) => Promise<void>

const PIECE_BYTES = 256 * 1024
/** Their content belongs to the running Postgres alone. */
const EMPTIED = new Set([
  'pg_wal',
  'pg_replslot',
  'pg_notify',
  'pg_snapshots',
  'pg_subtrans',
  'pg_dynshmem',
  'pg_serial',
  'pg_stat_tmp',
])
const LEFT_OUT =
  /^(?:hearth-wal-out|postmaster\.(?:pid|opts)|backup_label.*|tablespace_map.*|recovery\.signal|hearth-complete|current_logfiles.*)$|(?:^|\/)(?:pgsql_tmp.*|pg_internal\.init.*)$/

/** Begins a copy of the cluster in a directory while it runs: one session from here to `finish`. */
export async function openBaseCopy(connection: pg.ClientConfig, cluster: string): Promise<BaseCopy> {
  const client = new pg.Client({ ...connection, application_name: 'hearth backup', options: '-c statement_timeout=0' })
  client.on('error', () => {})
  await client.connect()
  try {
    const { rows } = await client.query<{ first: string; id: string; version: number }>(
      `SELECT pg_walfile_name(pg_backup_start('hearth', fast => true)) AS first,
         (SELECT system_identifier::text FROM pg_control_system()) AS id, current_setting('server_version_num')::int AS version`,
    )
    const { first, id, version } = rows[0]!
    return {
      systemIdentifier: id,
      postgres: Math.floor(version / 10_000),
      firstWal: first,
      pieces: (take) => piecesOf(cluster, '', take),
      async finish() {
        const { rows } = await client.query<{ label: string; last: string }>(
          `SELECT labelfile AS label, pg_walfile_name(lsn - 1) AS last FROM pg_backup_stop(wait_for_archive => false)`,
        )
        return { label: rows[0]!.label, lastWal: rows[0]!.last }
      },
      close: () => client.end(),
    }
  } catch (error) {
    await client.end().catch(() => {})
    throw error
  }
}

async function* piecesOf(cluster: string, folder: string, take: Take): AsyncGenerator<ClusterPiece> {
  const entries = await readdir(join(cluster, folder), { withFileTypes: true }).catch(ignoreGone)
  for (const entry of entries ?? []) {
    const path = folder === '' ? entry.name : `${folder}/${entry.name}`
    if (LEFT_OUT.test(path)) continue
    if (entry.isDirectory()) {
      yield { path, at: 0, bytes: Buffer.alloc(0), isDirectory: true }
      if (!EMPTIED.has(path)) yield* piecesOf(cluster, path, take)
    } else if (entry.isFile()) yield* piecesOfFile(cluster, path, take)
  }
}

/** A file may grow, shrink or vanish meanwhile: the log tells Postgres what became of it. */
async function* piecesOfFile(cluster: string, path: string, take: Take): AsyncGenerator<ClusterPiece> {
  const file = await open(join(cluster, path), 'r').catch(ignoreGone)
  if (file === undefined) return
  try {
    for (let at = 0; ; ) {
      const buffer = Buffer.allocUnsafe(PIECE_BYTES)
      const { bytesRead } = await file.read(buffer, 0, PIECE_BYTES, at)
      if (bytesRead === 0 && at > 0) return
      await take(bytesRead)
      yield { path, at, bytes: buffer.subarray(0, bytesRead), isDirectory: false }
      if (bytesRead === 0) return
      at += bytesRead
    }
  } finally {
    await file.close()
  }
}

function ignoreGone(error: NodeJS.ErrnoException): undefined {
  if (error.code === 'ENOENT') return undefined
  throw error
}

/** Whether Postgres puts its log aside, which cluster it is, and about how many bytes its files have. */
export async function readArchiving(
  connection: pg.ClientConfig,
): Promise<{ readonly isOn: boolean; readonly systemIdentifier: string; readonly bytes: number }> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    const { rows } = await client.query<{ mode: string; id: string; bytes: string }>(
      `SELECT current_setting('archive_mode') AS mode, (SELECT system_identifier::text FROM pg_control_system()) AS id,
         (SELECT sum(pg_database_size(oid)) FROM pg_database)::text AS bytes`,
    )
    const { mode, id, bytes } = rows[0]!
    return { isOn: mode !== 'off', systemIdentifier: id, bytes: Number(bytes) }
  } finally {
    await client.end()
  }
}

/** Closes the piece of the log that is being written, and gives its name. */
export async function switchWal(connection: pg.ClientConfig): Promise<string> {
  const client = new pg.Client(connection)
  await client.connect()
  try {
    // Without a write, Postgres does not close one.
    await client.query('SELECT pg_logical_emit_message(true, $1, $2)', ['hearth', 'journal'])
    const { rows } = await client.query<{ name: string }>('SELECT pg_walfile_name(pg_switch_wal()) AS name')
    return rows[0]!.name
  } finally {
    await client.end()
  }
}

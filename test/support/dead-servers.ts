import { type AddressInfo, createServer } from 'node:net'

/** Servers that take a connection and end it. */
export interface DeadServers {
  readonly names: readonly string[]
  /** When somebody tried, and whom, in milliseconds as of `performance.now()`. */
  readonly attempts: { readonly at: number; readonly address: string }[]
  close(): Promise<void>
}

/** So many of them on loopback, each with an address of its own, on one port. */
export async function openDeadServers(count: number): Promise<DeadServers> {
  const attempts: DeadServers['attempts'] = []
  const server = createServer((socket) => {
    attempts.push({ at: performance.now(), address: socket.localAddress ?? '' })
    socket.on('error', () => {}).destroy()
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  const { port } = server.address() as AddressInfo
  return {
    names: Array.from({ length: count }, (_, n) => `127.30.${Math.floor(n / 250)}.${1 + (n % 250)}:${port}`),
    attempts,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}

type Query = (sql: string, values: unknown[]) => Promise<unknown>

/** Puts a user of each server into a room, as the database has it; to be read when the server starts. */
export async function putIntoRoom(query: Query, roomId: string, servers: readonly string[]): Promise<void> {
  await query(
    `WITH newcomer AS (INSERT INTO matrix_user (user_id) SELECT '@somebody:' || server FROM unnest($2::text[]) AS server RETURNING user_nid)
     INSERT INTO room_member (user_nid, room_nid, membership, event_nid)
     SELECT user_nid, room_nid, 'join', last_nid FROM newcomer, room WHERE room_id = $1`,
    [roomId, servers],
  )
}

/** They have not answered for so many times, and are due any time now. */
export async function letLag(query: Query, servers: readonly string[], failures: number): Promise<void> {
  await query(
    `INSERT INTO federation_destination (server, first_unsent, failures, retry_at) SELECT server, 1, $2, 0 FROM unnest($1::text[]) AS server`,
    [servers, failures],
  )
}

import { createAuthority } from '../../test/support/certificate.ts'
import { residentHandler } from '../federation/resident-stub.ts'
import { buildStubRoom } from '../federation/stub-room.ts'
import { openStubServers, type StubHandler, type StubRequest, type StubServers } from '../federation/stub-servers.ts'

/** A process that is some servers with a large room, until its parent lets go. */

export interface StubJoinTask {
  readonly servers: number
  readonly members: number
}

export interface StubJoinReady {
  readonly roomId: string
  /** A server through which the room is joined. */
  readonly via: string
  /** The certificate that vouches for all of them. */
  readonly caFile: string
}

/** Of what the servers do next. */
export type StubJoinCommand =
  /** All but the first so many die: half of them refuse connections, half take them and say nothing. */
  | { readonly command: 'die'; readonly butFor: number }
  /** What was delivered since this was asked last. */
  | { readonly command: 'report' }

/** For each message and server, how long after the moment that its text names it came. */
export interface Deliveries {
  readonly latenciesMs: readonly number[]
}

process.once('message', (task: StubJoinTask) => {
  open(task).then(
    (ready) => process.send?.(ready),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})

let latenciesMs: number[] = []

async function open({ servers: count, members }: StubJoinTask): Promise<StubJoinReady> {
  const authority = createAuthority()
  process.on('disconnect', () => {
    authority.remove()
    process.exit(0)
  })
  let handle: StubHandler = () => undefined
  const servers = await openStubServers(authority, count, (request) => {
    note(request)
    return handle(request)
  })
  const room = buildStubRoom(servers.all, members)
  handle = residentHandler(room, servers.all)
  process.on('message', (command: StubJoinCommand) => {
    void obey(command, servers).then((answer) => process.send?.(answer))
  })
  return { roomId: room.roomId, via: servers.all[0]!.name, caFile: authority.file }
}

async function obey(command: StubJoinCommand, servers: StubServers): Promise<object> {
  if (command.command === 'report') {
    const report: Deliveries = { latenciesMs }
    latenciesMs = []
    return report
  }
  const dead = servers.all.slice(command.butFor)
  await servers.refuse(dead.filter((_, n) => n % 2 === 0))
  servers.hang(dead.filter((_, n) => n % 2 === 1))
  return {}
}

function note({ path, body }: StubRequest): void {
  if (!path.includes('/send/')) return
  const now = Date.now()
  for (const { content } of (JSON.parse(body) as { pdus: { content: { body?: string } }[] }).pdus) {
    const [word, sentAt] = content.body?.split(' ') ?? []
    if (word === 'sent') latenciesMs.push(now - Number(sentAt))
  }
}

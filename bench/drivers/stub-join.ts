import { createAuthority } from '../../test/support/certificate.ts'
import { residentHandler } from '../federation/resident-stub.ts'
import { buildStubRoom } from '../federation/stub-room.ts'
import { openStubServers, type StubHandler } from '../federation/stub-servers.ts'

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

process.once('message', (task: StubJoinTask) => {
  open(task).then(
    (ready) => process.send?.(ready),
    (error: Error) => {
      console.error(error.message)
      process.exit(1)
    },
  )
})

async function open({ servers: count, members }: StubJoinTask): Promise<StubJoinReady> {
  const authority = createAuthority()
  process.on('disconnect', () => {
    authority.remove()
    process.exit(0)
  })
  let handle: StubHandler = () => undefined
  const servers = await openStubServers(authority, count, (request) => handle(request))
  const room = buildStubRoom(servers.all, members)
  handle = residentHandler(room, servers.all)
  return { roomId: room.roomId, via: servers.all[0]!.name, caFile: authority.file }
}

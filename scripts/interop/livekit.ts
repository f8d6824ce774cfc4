import { spawn } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { AccessToken, RoomServiceClient } from 'livekit-server-sdk'
import { WebSocket } from 'undici'
import { livekitIdentity, livekitRoom } from '../../src/domain/calls/livekit-names.ts'
import { type Account, type Api, createRoom, type Json, openApi, register } from '../../test/support/api.ts'
import { startChildServer } from '../../test/support/child-server.ts'
import { freePort } from '../../test/support/free-port.ts'
import { waitUntil } from '../../test/support/wait.ts'

const KEY = 'hearth'
const SECRET = 'a secret of thirty-two or more characters'
const SLOT = 'm.call#ROOM'

interface Stage {
  readonly api: Api
  readonly alice: Account
  readonly roomId: string
  /** LiveKit's own view of its rooms. */
  readonly rooms: RoomServiceClient
  /** Where LiveKit listens, without a scheme. */
  readonly place: string
}

/** A LiveKit server on loopback, in which nobody but a server makes rooms. */
async function startLivekit(binary: string) {
  const [port, tcpPort, udpPort] = [await freePort(), await freePort(), await freePort()]
  const directory = await mkdtemp(join(tmpdir(), 'hearth-livekit-'))
  const settings = {
    port,
    bind_addresses: ['127.0.0.1'],
    rtc: { tcp_port: tcpPort, udp_port: udpPort, use_external_ip: false, node_ip: '127.0.0.1' },
    keys: { [KEY]: SECRET },
    room: { auto_create: false },
  }
  const file = join(directory, 'livekit.yaml')
  // JSON is YAML.
  await writeFile(file, JSON.stringify(settings), { mode: 0o600 })
  const child = spawn(binary, ['--config', file], { stdio: 'ignore' })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const place = `127.0.0.1:${port}`
  await waitUntil('LiveKit', () =>
    fetch(`http://${place}/`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  return {
    place,
    async close() {
      child.kill('SIGKILL')
      await ended
      await rm(directory, { recursive: true, force: true })
    },
  }
}

/** What LiveKit says of a token before a client connects. */
async function verdictOn(place: string, token: string): Promise<number> {
  return (await fetch(`http://${place}/rtc/validate?access_token=${token}`)).status
}

/** Connects as a client does, until LiveKit has said something. */
async function connectTo(place: string, token: string): Promise<WebSocket> {
  const socket = new WebSocket(`ws://${place}/rtc?access_token=${token}&auto_subscribe=1&protocol=15&sdk=js`)
  await new Promise<void>((resolve, reject) => {
    socket.addEventListener('message', () => resolve(), { once: true })
    socket.addEventListener('error', () => reject(new Error('LiveKit refuses the connection')), { once: true })
  })
  return socket
}

async function passFor({ api, alice, roomId }: Stage, path: string): Promise<Json> {
  const asked = `/user/${encodeURIComponent(alice.userId)}/openid/request_token`
  const openid_token = await api.call('POST', asked, { token: alice.token, body: {} })
  const { userId: claimed_user_id, deviceId: claimed_device_id } = alice
  const member = { id: 'm1', claimed_user_id, claimed_device_id }
  const body =
    path === '/sfu/get'
      ? { room: roomId, device_id: alice.deviceId, openid_token }
      : { room_id: roomId, slot_id: SLOT, openid_token, member }
  return api.call('POST', `/_hearth/livekit${path}`, { body })
}

function expect(what: string, found: unknown, wanted: unknown): void {
  const [is, should] = [JSON.stringify(found), JSON.stringify(wanted)]
  if (is !== should) throw new Error(`${what}: ${is} instead of ${should}`)
}

const ROWS: readonly (readonly [name: string, run: (stage: Stage) => Promise<void>])[] = [
  [
    'a token for a room that nobody has made is refused',
    async ({ place, roomId }) => {
      const token = new AccessToken(KEY, SECRET, { identity: 'x' })
      token.addGrant({ room: livekitRoom(roomId, SLOT), roomJoin: true })
      expect('the verdict', await verdictOn(place, await token.toJwt()), 404)
    },
  ],
  ...['/sfu/get', '/get_token'].map((path): readonly [string, (stage: Stage) => Promise<void>] => [
    `${path} makes the room and lets its user in, under the right name`,
    async (stage) => {
      const { place, rooms, roomId, alice } = stage
      const { url, jwt } = await passFor(stage, path)
      expect('the address', url, `ws://${place}`)
      expect('the verdict', await verdictOn(place, jwt), 200)
      const name = livekitRoom(roomId, SLOT)
      expect('the room', (await rooms.listRooms([name])).length, 1)
      const socket = await connectTo(place, jwt)
      const [participant] = await rooms.listParticipants(name)
      const hidden = livekitIdentity(alice.userId, alice.deviceId, 'm1')
      const identity = path === '/sfu/get' ? `${alice.userId}:${alice.deviceId}` : hidden
      expect('the participant', participant?.identity, identity)
      socket.close()
      await waitUntil('the participant gone', async () => (await rooms.listParticipants(name)).length === 0)
    },
  ]),
  [
    'its token makes no room and rules none',
    async (stage) => {
      const { jwt } = await passFor(stage, '/get_token')
      const ask = (method: string, body: object) =>
        fetch(`http://${stage.place}/twirp/livekit.RoomService/${method}`, {
          method: 'POST',
          headers: { authorization: `Bearer ${jwt}`, 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      expect('CreateRoom', (await ask('CreateRoom', { name: 'another' })).status, 401)
      expect('DeleteRoom', (await ask('DeleteRoom', { room: livekitRoom(stage.roomId, SLOT) })).status, 401)
    },
  ],
]

/** Runs a Hearth beside a real LiveKit server. @returns how many rows failed */
export async function livekitInterop(binary: string): Promise<number> {
  const livekit = await startLivekit(binary)
  const server = await startChildServer({
    env: {
      HEARTH__REGISTRATION__ENABLED: 'true',
      HEARTH__RATE_LIMITS__ENABLED: 'false',
      HEARTH__CALLS__LIVEKIT__URL: `ws://${livekit.place}`,
      HEARTH__CALLS__LIVEKIT__API_KEY: KEY,
      HEARTH__CALLS__LIVEKIT__API_SECRET: SECRET,
    },
  })
  const api = openApi(server.baseUrl)
  let failed = 0
  try {
    const alice = await register(api, 'alice')
    const roomId = await createRoom(api, alice.token)
    const rooms = new RoomServiceClient(`http://${livekit.place}`, KEY, SECRET)
    for (const [name, run] of ROWS) {
      const problem = await run({ api, alice, roomId, rooms, place: livekit.place }).catch(
        (error: Error) => error.message,
      )
      console.log(`${problem ? '✗' : '✓'} ${name}`)
      if (problem) console.log(`    ${problem}`)
      failed += problem ? 1 : 0
    }
    console.log(`${ROWS.length - failed} of ${ROWS.length} as they should be`)
    return failed
  } finally {
    await api.close()
    await server.dispose()
    await livekit.close()
  }
}

import Fastify, { type FastifyReply } from 'fastify'

/**
 * The least that waking many held syncs can cost here: one fragment, made once, written to every waiting answer. Also the least of a
 * sync with nothing new (one prepared answer) and of an initial sync (prepared fragments put together).
 */

const EVENTS_PER_ROOM = 20
const STATE_PER_ROOM = 7
const EVENT_BYTES = 700

const event = Buffer.from(JSON.stringify({ type: 'm.room.message', content: { body: 'x'.repeat(EVENT_BYTES - 46) } }))
const fragmentsOfRoom = Array.from({ length: EVENTS_PER_ROOM + STATE_PER_ROOM }, () => event)

/** Past the framework's own sending, which a held answer has no use for. */
function answer(reply: FastifyReply, body: Buffer): void {
  reply.hijack()
  reply.raw.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
}

const NOTHING_NEW = Buffer.from('{"next_batch":"s0"}')

let waiting: FastifyReply[] = []
let position = 0
let latest = NOTHING_NEW

const app = Fastify({ routerOptions: { maxParamLength: 512 } })

app.get('/_matrix/client/v3/sync', (request, reply) => {
  const { since, timeout, rooms } = request.query as Record<string, string | undefined>
  if (since === undefined) return initialSync(reply, Number(rooms ?? 200))
  if (timeout === '0') return answer(reply, NOTHING_NEW)
  if (since !== `s${position}`) return answer(reply, latest)
  waiting.push(reply)
})

app.put('/_matrix/client/v3/rooms/:roomId/send/:type/:txnId', (request, reply) => {
  position += 1
  const content = request.body
  const fragment = JSON.stringify({ type: 'm.room.message', event_id: `$${position}`, sender: '@a:floor', content })
  const room = (request.params as { roomId: string }).roomId
  latest = Buffer.from(
    `{"next_batch":"s${position}","rooms":{"join":{${JSON.stringify(room)}:{"timeline":{"events":[${fragment}]}}}}}`,
  )
  const woken = waiting
  waiting = []
  setImmediate(() => {
    for (const held of woken) answer(held, latest)
  })
  reply.send({ event_id: `$${position}` })
})

/** Every room's cached pieces once more into one answer, with its name and brackets around them. */
function initialSync(reply: FastifyReply, rooms: number): void {
  const comma = Buffer.from(',')
  const pieces: Buffer[] = [Buffer.from('{"next_batch":"s0","rooms":{"join":{')]
  for (let room = 0; room < rooms; room += 1) {
    pieces.push(Buffer.from(`${room === 0 ? '' : ','}"!${room}":{"timeline":{"events":[`))
    for (const fragment of fragmentsOfRoom) pieces.push(fragment, comma)
    pieces.push(Buffer.from('{}]}}'))
  }
  pieces.push(Buffer.from('}}}'))
  answer(reply, Buffer.concat(pieces))
}

const address = await app.listen({ host: '127.0.0.1', port: 0 })
process.once('disconnect', () => process.exit(0))
process.send?.(address)

import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** Of each connection, answers that began behind another one: their client did not wait for that (it pipelines). */
const queued = new WeakMap<Socket, Set<ServerResponse>>()

/**
 * To be called for each request first. When a connection ends, Node says so to the answer that is being sent, but to none of those that wait
 * behind it: what they hold until they are closed, they would hold for ever.
 */
export function noteQueued({ socket }: IncomingMessage, response: ServerResponse): void {
  if (response.socket !== null) return
  const answers = queued.get(socket) ?? openQueue(socket)
  answers.add(response)
  response.once('close', () => answers.delete(response))
}

function openQueue(socket: Socket): Set<ServerResponse> {
  const answers = new Set<ServerResponse>()
  queued.set(socket, answers)
  socket.once('close', () => {
    for (const answer of answers) if (answer.socket === null) close(answer)
  })
  return answers
}

/** As Node does it. */
function close(answer: ServerResponse): void {
  Object.assign(answer, { destroyed: true, _closed: true })
  answer.emit('close')
}

import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { SyncFollower } from '../../../src/domain/standby/sync-desk.ts'
import { UNKNOWN_VERSION } from '../../../src/http/nodes/news-frames.ts'
import { createVersionThread, type VersionThread } from '../../../src/http/nodes/version-thread.ts'
import { waitUntil } from '../../support/wait.ts'

/** The thread of a node that serves, and a node that asks it. */

/** More than it counts on the place for. */
const STOPPED_MS = 1_100

let thread: VersionThread
let node: Server
let followers: Set<SyncFollower>
let isHeld: () => boolean

/** Holds this event loop, as a process is that does not run. The thread goes on. */
const stop = () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, STOPPED_MS)

beforeEach(async () => {
  followers = new Set()
  isHeld = () => true
  const desk = {
    follow(follower: SyncFollower) {
      followers.add(follower)
      return () => void followers.delete(follower)
    },
  }
  thread = createVersionThread({ secret: 'a secret of the tests', now: Date.now, desk, isHeld: () => isHeld() })
  node = createServer()
  await once(node.listen(0, '127.0.0.1'), 'listening')
})
afterEach(async () => {
  thread.close()
  node.close()
  await waitUntil('the end of the thread', () => followers.size === 0)
})

const call = () => thread.connect(1, { address: `127.0.0.1:${(node.address() as AddressInfo).port}`, word: 'word' })

/** The thread's connection, once it may be asked. */
async function accept(): Promise<Socket> {
  const [socket] = (await once(node, 'connection')) as [Socket]
  socket.on('error', () => {})
  await once(socket, 'data')
  socket.write('HTTP/1.1 101 Switching Protocols\r\n\r\n')
  return socket
}

async function ask(socket: Socket): Promise<number> {
  socket.write('?')
  const [answer] = (await once(socket, 'data')) as [Buffer]
  return answer.readDoubleLE()
}

describe('the thread', () => {
  it('says at once what has just happened', async () => {
    call()
    const socket = await accept()
    const [follower] = followers
    thread.beat()
    const happenings = [
      () => follower!.room(1),
      () => follower!.user(1),
      () => follower!.began('a connection'),
      () => follower!.moved(),
      () => follower!.missed(),
      () => follower!.ended(1, undefined),
    ]
    for (const happen of happenings) {
      thread.beat()
      const before = await ask(socket)
      happen()
      thread.beat()
      expect([await ask(socket), thread.version()]).toEqual([before + 1, before + 1])
    }
  })

  it('answers although the event loop was busy while it started', async () => {
    call()
    const accepted = accept()
    stop()
    const socket = await accepted
    thread.beat()
    expect(await ask(socket)).toBe(thread.version())
  })

  it('says nothing once the event loop has not looked for a while', async () => {
    call()
    const socket = await accept()
    thread.beat()
    expect(await ask(socket)).toBe(thread.version())
    stop()
    expect(await ask(socket)).toBe(UNKNOWN_VERSION)
  })

  it('says nothing if the process was stopped while it looked whether it has its place', async () => {
    call()
    const socket = await accept()
    stop()
    isHeld = () => {
      stop()
      return true
    }
    thread.beat()
    expect(await ask(socket)).toBe(UNKNOWN_VERSION)
  })

  it('says nothing more once it is closed, and ends', async () => {
    call()
    const socket = await accept()
    thread.close()
    thread.beat()
    const closed = new Promise((resolve) => socket.once('close', () => resolve(UNKNOWN_VERSION)))
    const heard = await Promise.race([ask(socket).catch(() => UNKNOWN_VERSION), closed])
    expect(heard).toBe(UNKNOWN_VERSION)
    await closed
    call()
    await waitUntil('the end of the thread', () => followers.size === 0)
  })

  it('ends when no node asks any more, and is another one when one asks again', async () => {
    call()
    const socket = await accept()
    const before = thread.version()!
    thread.disconnect(1)
    await once(socket, 'close')
    await waitUntil('the end of the thread', () => followers.size === 0)
    expect(thread.version()).toBeUndefined()
    call()
    await accept()
    expect(thread.version()).toBeGreaterThan(before)
  })

  it('ends the connection of who asks for more than it reads', async () => {
    call()
    const socket = await accept()
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(Buffer.alloc(65_536))
    await closed
  })
})

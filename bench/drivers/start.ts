import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { HoldTask } from './hold.ts'
import type { LookupResult, LookupTask } from './lookups.ts'

/** Runs a driver as a process of its own: one message with the task in, one with the result out. */
export async function runDriver<Task extends object, Result>(file: string, task: Task): Promise<Result> {
  const child = forkHere(file)
  const result = await firstAnswer<Result>(child, task)
  child.disconnect()
  return result
}

/** A driver that stays until it is let go. */
export interface Driver<Ready> {
  readonly ready: Ready
  /** One message with a task in, one with the result out. */
  ask<Task extends object, Result>(task: Task): Promise<Result>
  end(): void
}

export async function startDriver<Task extends object, Ready>(file: string, task: Task): Promise<Driver<Ready>> {
  const child = forkHere(file)
  return {
    ready: await firstAnswer<Ready>(child, task),
    ask: (next) => firstAnswer(child, next),
    end: () => child.disconnect(),
  }
}

export async function startHolding(task: HoldTask): Promise<{ end(): Promise<void> }> {
  const child = forkHere('./hold.js')
  await firstAnswer(child, task)
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  return {
    end: () => {
      child.disconnect()
      return ended
    },
  }
}

/** Looks up until it is told to end. */
export function startLookups(task: LookupTask): { end(): Promise<LookupResult> } {
  const child = forkHere('./lookups.js')
  const result = firstAnswer<LookupResult>(child, task)
  result.catch(() => undefined)
  return {
    async end() {
      child.send('end')
      const found = await result
      child.disconnect()
      return found
    },
  }
}

/** What a driver holds is not tidied up while others are measured on the same cores. */
const execArgv = ['--no-memory-reducer']

const forkHere = (file: string) => fork(fileURLToPath(new URL(file, import.meta.url)), { execArgv })

function firstAnswer<Result>(child: ChildProcess, task: object): Promise<Result> {
  return new Promise((resolve, reject) => {
    child.once('message', (result) => resolve(result as Result))
    child.once('error', reject)
    child.once('exit', (code) => reject(new Error(`the driver ended with code ${code}`)))
    child.send(task)
  })
}

/** Identical calls that are under way at once are one: each of them gets the answer of the first. */
export interface JointCalls {
  run(name: readonly unknown[], work: () => Promise<void>): Promise<void>
}

export function createJointCalls(): JointCalls {
  const running = new Map<string, Promise<void>>()

  return {
    run(name, work) {
      const key = JSON.stringify(name)
      const known = running.get(key)
      if (known) return known
      const answer = work().finally(() => running.delete(key))
      running.set(key, answer)
      return answer
    },
  }
}

/** Merges identical calls that run at the same time: each caller gets the answer of the first call. */
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

/** A set for each key, in the order of adding. Most sets here have one member, which is kept without a set of its own. */
export class SetsByKey<Key, Member extends object> {
  readonly #sets = new Map<Key, Member | Set<Member>>()

  add(key: Key, member: Member): void {
    const known = this.#sets.get(key)
    if (known === undefined) this.#sets.set(key, member)
    else if (known instanceof Set) known.add(member)
    else if (known !== member) this.#sets.set(key, new Set([known, member]))
  }

  delete(key: Key, member: Member): void {
    const known = this.#sets.get(key)
    const isEmpty = known instanceof Set ? known.delete(member) && known.size === 0 : known === member
    if (isEmpty) this.#sets.delete(key)
  }

  has(key: Key): boolean {
    return this.#sets.has(key)
  }

  /** The members as they are now. */
  of(key: Key): readonly Member[] {
    const known = this.#sets.get(key)
    if (known === undefined) return []
    return known instanceof Set ? [...known] : [known]
  }
}

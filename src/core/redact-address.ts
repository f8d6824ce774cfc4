/**
 * The form of an email address that strangers may see (identity service API, "Invitation storage"): `f...@b...` with one letter shown.
 * Of each half never more than half is shown.
 */
export function redactEmail(address: string, shown: number): string {
  return address
    .split('@')
    .map((half) => {
      const letters = [...half]
      return `${letters.slice(0, Math.min(shown, Math.floor(letters.length / 2))).join('')}...`
    })
    .join('@')
}

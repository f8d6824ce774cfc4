import { useEffect, useRef, useState } from 'preact/hooks'

const PAUSE_MS = 250

/** A field that searches while one types. */
export function Search({
  label,
  value,
  search,
}: {
  readonly label: string
  readonly value: string
  readonly search: (text: string) => void
}) {
  const [text, setText] = useState(value)
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined)
  useEffect(() => setText(value), [value])
  useEffect(() => () => clearTimeout(timer.current), [])

  function typed(next: string): void {
    setText(next)
    clearTimeout(timer.current)
    timer.current = setTimeout(() => search(next.trim()), PAUSE_MS)
  }

  return (
    <search>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          clearTimeout(timer.current)
          search(text.trim())
        }}
      >
        <label class="search">
          <span class="hidden">{label}</span>
          <input
            type="search"
            data-search="yes"
            placeholder={label}
            value={text}
            maxLength={255}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => typed(event.currentTarget.value)}
          />
          <span class="key" aria-hidden="true">
            /
          </span>
        </label>
      </form>
    </search>
  )
}

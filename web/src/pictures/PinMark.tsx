import "./pictures.css";

/** The sign of a pin; the words are beside it. */
export function PinMark({ x = 0, y = 0 }: { readonly x?: number; readonly y?: number }) {
  return (
    <svg className="picture-pin" aria-hidden="true" x={x} y={y} width={12} height={12} viewBox="0 0 12 12">
      <path d="M4 1h4v4l2 2H2l2-2zM6 7v4" />
    </svg>
  );
}

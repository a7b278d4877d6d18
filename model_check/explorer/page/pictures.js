/** The diagram as a picture by itself: an SVG with its looks in it, and that as pixels. */

const LOOKS = ["fill", "stroke", "stroke-width", "stroke-dasharray", "font-family", "font-size", "font-weight", "opacity"];
const SHARPNESS = 2;
/** Browsers draw no larger pictures. */
const LARGEST = 16_000;

/** @param {SVGElement} drawing @returns {string} */
export function standAlone(drawing) {
  const place = document.createElement("div");
  place.className = "off-screen";
  place.append(drawing);
  document.body.append(place);
  try {
    for (const one of [drawing, ...drawing.querySelectorAll("*")]) inLook(one);
    const background = getComputedStyle(document.body).backgroundColor;
    drawing.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    drawing.setAttribute("style", `background: ${background}`);
    return new XMLSerializer().serializeToString(drawing);
  } finally {
    place.remove();
  }
}

function inLook(one) {
  const look = getComputedStyle(one);
  for (const name of LOOKS) one.setAttribute(name, look.getPropertyValue(name));
}

/** @param {SVGElement} drawing @returns {Promise<Blob>} */
export async function pictureOf(drawing) {
  const [width, height] = ["width", "height"].map((name) => Number(drawing.getAttribute(name)));
  const scale = Math.min(SHARPNESS, LARGEST / Math.max(width, height));
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standAlone(drawing))}`;
  await image.decode();
  const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale });
  const pen = canvas.getContext("2d");
  pen.fillStyle = getComputedStyle(document.body).backgroundColor;
  pen.fillRect(0, 0, canvas.width, canvas.height);
  pen.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the run is too long for a PNG; take the SVG"))), "image/png"));
}
